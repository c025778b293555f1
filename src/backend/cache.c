/*
 * An ordinary file in the page cache, under the undo engine, which works in place. The kernel writes
 * pages back when it likes. Keeping an order would cost a sync at each page fault, so the rounds do
 * nothing. The container survives the death of the process but not a power failure (PM_UNSAFE_POWER).
 * Only recovery and close wait for the file.
 */
#define _GNU_SOURCE
#include "backend/backend.h"

#include "base/cancel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void cache_write_back(struct medium *medium, const void *address, size_t size)
{
    (void)medium, (void)address, (void)size;
}

static int cache_publish(struct medium *medium, const void *address, size_t size)
{
    (void)medium, (void)address, (void)size;
    return 0;
}

static int cache_copy(struct medium *medium, void *to, const void *from, size_t size)
{
    (void)medium;
    memcpy(to, from, size);
    return 0;
}

static int cache_fence(struct medium *medium)
{
    (void)medium;
    return 0;
}

static int cache_settle(struct medium *medium)
{
    UNCANCELLED;
    /* A read-only container has no descriptor here: its recovery is in private memory. */
    return medium->fd < 0 || TEMP_FAILURE_RETRY(fdatasync(medium->fd)) == 0 ? 0 : -errno;
}

const struct medium_ops medium_cache = {
    .name = "file",
    .power_safe = false,
    .write_back = cache_write_back,
    .publish = cache_publish,
    .copy = cache_copy,
    .fence = cache_fence,
    .settle = cache_settle,
    .sync_length = cache_fence,
};
