/* The geometric means of the structures' figures: they are what libpm as a whole is held to. */
#pragma once

#include "driver/results.h"

namespace bench
{

/** Add the tables "means" and "means_written", of random keys, and two rows of "values_nvm". Each repetition has
 * a mean of its own, so ratios are taken as in all tables. */
void add_means(Results &results);

} // namespace bench
