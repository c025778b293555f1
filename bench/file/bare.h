/*
 * The least that a durable commit can be on this disk, at this moment: 512 bytes written to blocks
 * of a file that are there already, and fdatasync(2).
 */
#pragma once

#include <string>

namespace bench
{

class BareDisk
{
  public:
    /** Makes a file in the directory, which is there until the end. */
    explicit BareDisk(const std::string &directory);
    BareDisk(const BareDisk &) = delete;
    BareDisk &operator=(const BareDisk &) = delete;
    ~BareDisk();

    /** Nanoseconds of one such write, the mean of a few. */
    double write_ns();

  private:
    int fd_;
};

} // namespace bench
