// One file in memory, which is filled with one container after another. tmpfs, so it counts as
// pmem.
#ifndef TESTS_HOSTILE_MEMORY_FILE_HPP
#define TESTS_HOSTILE_MEMORY_FILE_HPP

#include "hostile/anatomy.hpp"

namespace hostile
{

class MemoryFile
{
  public:
    MemoryFile();
    ~MemoryFile();
    MemoryFile(const MemoryFile &) = delete;
    const char *path() const { return path_.c_str(); }

    void fill(const Bytes &bytes) const; // pages that are right stay, which takes half of the time
    char byte_at(uint64_t offset) const;

  private:
    void map(size_t bytes) const;

    int fd_;
    mutable char *map_ = nullptr; // all of the file, and room for it to grow
    mutable size_t mapped_ = 0;
    std::string path_;
};

} // namespace hostile

#endif
