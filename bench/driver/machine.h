/* The machine and the build that the figures belong to. */
#pragma once

#include <map>
#include <string>

namespace bench
{

/** `file_directory`: where the part on ordinary files writes. */
std::map<std::string, std::string> describe_machine(const std::string &file_directory);

} // namespace bench
