#include "system/disk.hpp"

#include "common/mounting.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace test
{

namespace
{

[[noreturn]] void refuse(const std::string &what)
{
    throw std::runtime_error(what + ": " + strerror(errno) +
                             "; tests of a full disk must be root, to mount one");
}

} // namespace

Disk::Disk(uint64_t bytes) : path_("/dev/shm/libpm-disk-XXXXXX")
{
    if (!enter_own_mounts())
        refuse("a mount namespace");
    if (!mkdtemp(path_.data()))
        refuse("mkdtemp " + path_);
    std::string settings = "mode=700,size=" + std::to_string(bytes);
    if (!mount_tmpfs(path_, settings))
        refuse("mounting a tmpfs at " + path_);
}

Disk::~Disk()
{
    umount2(path_.c_str(), MNT_DETACH);
    rmdir(path_.c_str());
}

uint64_t Disk::free_bytes() const
{
    struct statvfs fs;
    if (statvfs(path_.c_str(), &fs) != 0)
        refuse("statvfs");
    return fs.f_bavail * fs.f_frsize;
}

void Disk::fill(uint64_t leave)
{
    int fd = open((*this / "filler").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        refuse("filler");
    uint64_t free = free_bytes();
    if (free > leave && fallocate(fd, 0, st.st_size, (off_t)(free - leave)) != 0)
        refuse("filling the disk");
    close(fd);
    if (free_bytes() > leave)
        throw std::runtime_error("the disk does not fill");
}

void Disk::free(uint64_t bytes)
{
    struct stat st;
    std::string filler = *this / "filler";
    if (stat(filler.c_str(), &st) != 0)
        refuse("filler");
    off_t left = std::max(st.st_size - (off_t)bytes, (off_t)0);
    if (truncate(filler.c_str(), left) != 0)
        refuse("freeing disk space");
}

void Disk::free_all()
{
    free(UINT64_C(1) << 62);
}

} // namespace test
