/* The machine and the build that the figures belong to. */
#pragma once

#include <map>
#include <string>

namespace bench
{

std::map<std::string, std::string> describe_machine();

} // namespace bench
