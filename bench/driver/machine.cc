#include "driver/machine.h"

#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace bench
{
namespace
{

/** What follows the colon in the first line of `path` that begins with `key`; "unknown" if none. */
std::string field(const char *path, const std::string &key)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(key))
            return line.substr(line.find_first_not_of(" \t", line.find(':') + 1));
    return "unknown";
}

std::string kernel()
{
    utsname name;
    return uname(&name) == 0 ? std::string(name.sysname) + " " + name.release : "unknown";
}

/** Type of the file system, by the line of mountinfo that has its device number. */
std::string file_system(const std::string &directory)
{
    struct stat status;
    if (stat(directory.c_str(), &status) != 0)
        return "unknown";
    const std::string device = ' ' + std::to_string(major(status.st_dev)) + ':' +
                               std::to_string(minor(status.st_dev)) + ' ';
    std::ifstream mounts("/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);)
        if (line.find(device) != std::string::npos) {
            std::istringstream rest(line.substr(line.find(" - ") + 3));
            std::string type;
            rest >> type;
            return type;
        }
    return "unknown";
}

} // namespace

std::map<std::string, std::string> describe_machine(const std::string &file_directory)
{
    return {
        {"processor", field("/proc/cpuinfo", "model name")},
        {"processors", std::to_string(sysconf(_SC_NPROCESSORS_ONLN))},
        {"memory", field("/proc/meminfo", "MemTotal")},
        {"kernel", kernel()},
        {"compiler", BENCH_COMPILER},
        {"build", BENCH_BUILD_TYPE},
        {"peers", BENCH_PEERS},
        {"file system", file_system(file_directory)},
    };
}

} // namespace bench
