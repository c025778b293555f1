/*
 * An ordinary file to which a log is appended. What is copied or published goes to the file by write(2) at
 * once, and fdatasync(2) makes it durable. The mapping of the file is for reading. The part with the words
 * that are published is a private copy.
 *
 * The kernel reports an error of write-back to one sync only. So one thread syncs at a time, and after a sync
 * that failed, no thread syncs any more. Otherwise the sync of a growing file might get the error, and the
 * next sync, a commit's, would succeed.
 */
#define _GNU_SOURCE
#include "backend/backend.h"

#include "base/bits.h"
#include "base/cancel.h"

#include <errno.h>
#include <unistd.h>

static int append_copy(struct medium *medium, void *to, const void *from, size_t size)
{
    return file_write(medium->fd, from, size, (uint64_t)((char *)to - medium->file));
}

static int append_publish(struct medium *medium, const void *address, size_t size)
{
    return file_write(medium->fd, address, size, (uint64_t)((const char *)address - medium->file));
}

/* What is in the mapping is in the file. */
static void append_write_back(struct medium *medium, const void *address, size_t size)
{
    (void)medium, (void)address, (void)size;
}

int medium_sync_file(struct medium *medium)
{
    UNCANCELLED;
    pthread_mutex_lock(&medium->syncing);
    int error = medium->failed;
    if (error == 0) {
        count(&medium->counts.fences);
        error = TEMP_FAILURE_RETRY(fdatasync(medium->fd)) == 0 ? 0 : -errno;
        if (error != 0)
            __atomic_store_n(&medium->failed, error, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&medium->syncing);
    return error;
}

const struct medium_ops medium_append = {
    .name = "file",
    .power_safe = true,
    .write_back = append_write_back,
    .publish = append_publish,
    .copy = append_copy,
    .fence = medium_sync_file,
    .settle = medium_sync_file,
    .sync_length = medium_sync_file, /* fdatasync(2) makes the length durable too */
};
