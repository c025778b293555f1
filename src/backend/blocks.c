/*
 * Allocation of a file's blocks, and write(2) to them. A container's file never has a hole: a store to a
 * hole may meet a full disk, and the program would get a signal.
 *
 * On network and user-space file systems a signal may interrupt all of these calls. An interrupted call
 * goes on; it does not fail.
 */
#define _GNU_SOURCE
#include "backend/backend.h"

#include "base/bits.h"
#include "base/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int file_write(int fd, const void *from, size_t size, uint64_t offset)
{
    UNCANCELLED;
    while (size > 0) {
        ssize_t n = TEMP_FAILURE_RETRY(pwrite(fd, from, size, (off_t)offset));
        if (n < 0)
            return -errno;
        from = (const char *)from + n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

int file_sync(int fd)
{
    UNCANCELLED;
    return TEMP_FAILURE_RETRY(fsync(fd)) == 0 ? 0 : -errno;
}

/* For file systems without fallocate(2). */
static int write_zeros(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[1 << 16];
    int error = 0;
    for (; from < to && error == 0; from += sizeof zeros)
        error = file_write(fd, zeros, min_u64(sizeof zeros, to - from), from);
    return error;
}

static int truncate_to(int fd, uint64_t size)
{
    return TEMP_FAILURE_RETRY(ftruncate(fd, (off_t)size)) == 0 ? 0 : -errno;
}

static int allocate(int fd, uint64_t from, uint64_t to)
{
    /* A process killed while it grew the file may have left a part of a segment behind, with
     * any contents. Cut it off, so that everything allocated here reads as zero. */
    int error = truncate_to(fd, from);
    if (error != 0)
        return error;
    if (TEMP_FAILURE_RETRY(fallocate(fd, 0, (off_t)from, (off_t)(to - from))) == 0)
        return 0;
    return errno == EOPNOTSUPP ? write_zeros(fd, from, to) : -errno;
}

int file_allocate(int fd, uint64_t from, uint64_t to)
{
    UNCANCELLED;
    int error = allocate(fd, from, to);
    if (error != 0)
        (void)file_give_back(fd, from);
    return error;
}

void file_punch_unwritten(int fd, uint64_t size)
{
    UNCANCELLED;
    off_t at = 0, end;
    for (; (at = lseek(fd, at, SEEK_HOLE)) >= 0 && (uint64_t)at < size; at = end) {
        end = lseek(fd, at, SEEK_DATA);
        if (end < 0 || (uint64_t)end > size)
            end = (off_t)size;
        (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, end - at);
    }
}

int file_fill(int fd, uint64_t size)
{
    UNCANCELLED;
    if (TEMP_FAILURE_RETRY(fallocate(fd, 0, 0, (off_t)size)) == 0 || errno == EOPNOTSUPP)
        return 0;
    int error = -errno; /* most file systems keep the blocks for which they had room */
    file_punch_unwritten(fd, size);
    return error;
}

void file_punch(int fd, uint64_t from, uint64_t to)
{
    UNCANCELLED;
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                    (off_t)(to - from));
}

int file_give_back(int fd, uint64_t from)
{
    return truncate_to(fd, from);
}
