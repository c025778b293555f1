#include "driver/machine.h"

#include <fstream>
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

} // namespace

std::map<std::string, std::string> describe_machine()
{
    return {
        {"processor", field("/proc/cpuinfo", "model name")},
        {"processors", std::to_string(sysconf(_SC_NPROCESSORS_ONLN))},
        {"memory", field("/proc/meminfo", "MemTotal")},
        {"kernel", kernel()},
        {"compiler", BENCH_COMPILER},
        {"build", BENCH_BUILD_TYPE},
        {"libpmemobj", BENCH_LIBPMEMOBJ},
    };
}

} // namespace bench
