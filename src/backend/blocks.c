/*
 * The blocks of a file. It never has a hole, since a store into one may meet a full disk, and then
 * the program would get a signal for it.
 */
#define _GNU_SOURCE
#include "backend/backend.h"

#include "base/bits.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* For file systems without fallocate(2). */
static int write_zeros(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[1 << 16];
    while (from < to) {
        ssize_t n = pwrite(fd, zeros, min_u64(sizeof zeros, to - from), (off_t)from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        from += (uint64_t)n;
    }
    return 0;
}

static int allocate(int fd, uint64_t from, uint64_t to)
{
    /* A process killed while it grew the file may have left a part of a segment behind, with
     * whatever contents: cut it off, so that all that is allocated here reads as zero. */
    if (ftruncate(fd, (off_t)from) != 0)
        return -errno;
    int error;
    do
        error = fallocate(fd, 0, (off_t)from, (off_t)(to - from)) == 0 ? 0 : -errno;
    while (error == -EINTR);
    return error == -EOPNOTSUPP ? write_zeros(fd, from, to) : error;
}

int file_allocate(int fd, uint64_t from, uint64_t to, bool durable)
{
    int error = allocate(fd, from, to);
    if (error == 0 && durable && fsync(fd) != 0)
        error = -errno;
    /* Give back what a half-failed allocation took; if even that fails the tail stays unused. */
    if (error != 0 && ftruncate(fd, (off_t)from) != 0)
        errno = -error;
    return error;
}
