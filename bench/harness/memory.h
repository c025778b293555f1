/* What memory this process has, and a container that it has open. */
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/stat.h>

namespace bench
{

/** Bytes of the file in memory that is home; 0: there is none. There is one container. */
inline double home_bytes()
{
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        const std::string name = std::filesystem::read_symlink(entry.path(), error).string();
        struct stat st{};
        if (name.find("libpm home") != std::string::npos && stat(entry.path().c_str(), &st) == 0)
            return (double)st.st_blocks * 512;
    }
    return 0;
}

/** Bytes of a line of /proc/self/status. */
inline double status_bytes(const std::string &name)
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.compare(0, name.size(), name) == 0)
            return std::stod(line.substr(name.size() + 1)) * 1024;
    throw std::runtime_error(name + " is not there");
}

} // namespace bench
