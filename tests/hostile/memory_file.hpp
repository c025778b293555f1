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
    int fd_;
    std::string path_;
};

} // namespace hostile

#endif
