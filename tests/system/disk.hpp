// A file system of a few megabytes, to be filled and freed.
#ifndef TESTS_SYSTEM_DISK_HPP
#define TESTS_SYSTEM_DISK_HPP

#include <cstdint>
#include <string>

namespace test
{

// A tmpfs of `bytes` bytes, gone with the object; if they are 0, it tells no limit. Its mount namespace belongs to
// this process and its children, and ends with them. Throws if this user may not mount; so test cases that have
// one are tagged [disk] (common/main.cpp).
class Disk
{
  public:
    explicit Disk(uint64_t bytes);
    ~Disk();
    Disk(const Disk &) = delete;
    std::string operator/(const std::string &name) const { return path_ + "/" + name; }

    uint64_t free_bytes() const;
    void fill(uint64_t leave = 0); // with a file, but for `leave` bytes
    void free(uint64_t bytes);     // of that file
    void free_all();

  private:
    std::string path_;
};

} // namespace test

#endif
