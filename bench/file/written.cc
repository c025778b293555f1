#include "file/written.h"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <system_error>
#include <unistd.h>

namespace bench
{
namespace
{

constexpr uint64_t sector = 512; // the unit of stat, whatever the device's is
constexpr int sectors_written_field = 7;

[[noreturn]] void fail(const std::string &what)
{
    throw std::system_error(errno, std::generic_category(), what);
}

/** Returns the number of the device that the directory is on. */
dev_t write_out(const std::string &directory)
{
    int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || syncfs(fd) != 0)
        fail(directory);
    close(fd);
    return status.st_dev;
}

} // namespace

std::optional<uint64_t> bytes_written(const std::string &directory)
{
    dev_t device = write_out(directory);
    std::ifstream stat("/sys/dev/block/" + std::to_string(major(device)) + ":" +
                       std::to_string(minor(device)) + "/stat");
    uint64_t sectors = 0;
    for (int field = 0; field < sectors_written_field; field++)
        stat >> sectors;
    if (!stat)
        return std::nullopt;
    return sectors * sector;
}

} // namespace bench
