/* The geometric means of the structures' figures: they are what libpm as a whole is held to. */
#pragma once

#include "driver/results.h"

namespace bench
{

/** Adds tables "means" and "means_written", of random keys. Each repetition has its own mean, so ratios are as of any row. */
void add_means(Results &results);

} // namespace bench
