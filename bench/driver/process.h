/* Programs that the driver runs. */
#pragma once

#include "harness/sample.h"

#include <string>
#include <vector>

namespace bench
{

/** Run a program and return what it measured. Throws when it fails. */
std::vector<Sample> run(const std::vector<std::string> &command);

} // namespace bench
