// Durable files and directories. Both functions throw tiered::error. See files.cpp.
#ifndef EXAMPLES_TIERED_DIRECTORY_HPP
#define EXAMPLES_TIERED_DIRECTORY_HPP

#include <filesystem>

namespace tiered
{

/// What was made, renamed or deleted in a directory survives a power failure.
void sync_directory(const std::filesystem::path &path);
/// What was written to a file does.
void sync_file(const std::filesystem::path &path);

} // namespace tiered

#endif
