#include "file/bare.h"

#include "harness/clock.h"

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace bench
{
namespace
{

constexpr size_t record = 512; // bytes
constexpr size_t records = 20;

void require(bool holds, const char *what)
{
    if (!holds)
        throw std::system_error(errno, std::generic_category(), what);
}

} // namespace

BareDisk::BareDisk(const std::string &directory)
    : fd_(open((directory + "/bare").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600))
{
    require(fd_ >= 0, "open");
    const std::string zeros(record * records, '\0');
    require(pwrite(fd_, zeros.data(), zeros.size(), 0) == static_cast<ssize_t>(zeros.size()),
            "pwrite");
    require(fsync(fd_) == 0, "fsync");
}

BareDisk::~BareDisk()
{
    close(fd_);
}

double BareDisk::write_ns()
{
    const std::string bytes(record, '\1');
    return elapsed_ns([&] {
               for (size_t i = 0; i < records; i++) {
                   auto offset = static_cast<off_t>(i * record);
                   require(pwrite(fd_, bytes.data(), record, offset) == record, "pwrite");
                   require(fdatasync(fd_) == 0, "fdatasync");
               }
           }) /
           records;
}

} // namespace bench
