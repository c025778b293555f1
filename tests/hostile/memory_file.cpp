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
    if (map_)
        munmap(map_, mapped_);
    close(fd_);
}

void MemoryFile::map(size_t bytes) const
{
    constexpr size_t step = 16 << 20;
    if (map_)
        munmap(map_, mapped_);
    mapped_ = (bytes / step + 1) * step;
    void *map = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    map_ = map == MAP_FAILED ? nullptr : static_cast<char *>(map);
}

// By a mapping: to read the file back by a call for each container takes a fifth of the time.
void MemoryFile::fill(const Bytes &bytes) const
{
    constexpr size_t page = 4096;
    if (bytes.size() > mapped_ || !map_)
        map(bytes.size());
    if (!map_ || ftruncate(fd_, (off_t)bytes.size()) != 0)
        throw std::runtime_error("cannot fill a file in memory");
    for (size_t i = 0; i < bytes.size(); i += page) {
        const size_t n = std::min(bytes.size() - i, page);
        if (memcmp(bytes.data() + i, map_ + i, n) != 0)
            memcpy(map_ + i, bytes.data() + i, n);
    }
}

char MemoryFile::byte_at(uint64_t offset) const
{
    char byte = 0;
    if (pread(fd_, &byte, 1, (off_t)offset) != 1)
        throw std::runtime_error("cannot read a file in memory");
    return byte;
}

} // namespace hostile
