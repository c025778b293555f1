#include "hostile/memory_file.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace hostile
{

MemoryFile::MemoryFile() : fd_(memfd_create("container", MFD_CLOEXEC))
{
    path_ = "/proc/self/fd/" + std::to_string(fd_);
}

MemoryFile::~MemoryFile()
{
    close(fd_);
}

void MemoryFile::fill(const Bytes &bytes) const
{
    constexpr size_t page = 4096;
    char now[16 * page];
    bool filled = ftruncate(fd_, (off_t)bytes.size()) == 0;
    for (size_t i = 0; filled && i < bytes.size(); i += sizeof now) {
        const size_t n = std::min(bytes.size() - i, sizeof now);
        filled = pread(fd_, now, n, (off_t)i) == (ssize_t)n;
        for (size_t k = 0; filled && k < n; k += page) {
            const size_t m = std::min(n - k, page);
            if (memcmp(bytes.data() + i + k, now + k, m) != 0)
                filled = pwrite(fd_, bytes.data() + i + k, m, (off_t)(i + k)) == (ssize_t)m;
        }
    }
    if (!filled)
        throw std::runtime_error("cannot fill a file in memory");
}

char MemoryFile::byte_at(uint64_t offset) const
{
    char byte = 0;
    if (pread(fd_, &byte, 1, (off_t)offset) != 1)
        throw std::runtime_error("cannot read a file in memory");
    return byte;
}

} // namespace hostile
