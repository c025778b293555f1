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
    static const char zeros[4096] = {};
    bool filled = ftruncate(fd_, 0) == 0 && ftruncate(fd_, (off_t)bytes.size()) == 0;
    for (size_t i = 0; filled && i < bytes.size(); i += sizeof zeros) {
        size_t n = std::min(bytes.size() - i, sizeof zeros);
        if (memcmp(bytes.data() + i, zeros, n) != 0)
            filled = pwrite(fd_, bytes.data() + i, n, (off_t)i) == (ssize_t)n;
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
