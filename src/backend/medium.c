/*
 * Counts the calls to a medium and passes them on. With the counts tests prove "one round
 * and one fence per commit".
 */
#define _GNU_SOURCE
#include "backend/backend.h"

#include "base/bits.h"

#include <errno.h>
#include <libpmem.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

void medium_write_back(struct medium *medium, const void *address, size_t size)
{
    uint64_t first = align_down((uintptr_t)address, PM_LINE);
    uint64_t end = align_up((uintptr_t)address + size, PM_LINE);
    if (!medium->queue) /* which counts when it writes */
        medium->counts.lines_flushed += (end - first) / PM_LINE;
    medium->ops->write_back(medium, address, size);
}

int medium_publish(struct medium *medium, const void *address, size_t size)
{
    medium->counts.lines_flushed++;
    return medium->ops->publish(medium, address, size);
}

int medium_rewrite(struct medium *medium, const void *address, size_t size)
{
    if (medium->queue) /* to publish would make private copies of these pages */
        return file_write(medium->fd, address, size, (uint64_t)((const char *)address - medium->file));
    return medium_publish(medium, address, size);
}

int medium_publish_word(struct medium *medium, uint64_t *at, uint64_t word)
{
    __atomic_store_n(at, word, __ATOMIC_RELAXED);
    return medium_publish(medium, at, sizeof *at);
}

int medium_copy(struct medium *medium, void *to, const void *from, size_t size)
{
    medium->counts.bytes_copied += size;
    return medium->ops->copy(medium, to, from, size);
}

void medium_carry_line(struct medium *medium, void *to, const void *from)
{
    if (medium->queue) {
        memcpy(to, from, PM_LINE);
        medium_write_back(medium, to, PM_LINE);
    } else {
        medium->counts.lines_flushed++;
        (void)medium->ops->copy(medium, to, from, PM_LINE); /* to memory, so it cannot fail */
    }
}

int medium_fence(struct medium *medium)
{
    count(&medium->counts.rounds);
    return medium->ops->fence(medium);
}

int medium_settle(struct medium *medium)
{
    count(&medium->counts.rounds);
    return medium->ops->settle(medium);
}

int medium_sync_length(struct medium *medium)
{
    return medium->ops->sync_length(medium);
}

const struct medium_ops *medium_of(int fd, const void *home, size_t size, bool synchronous)
{
    struct statfs fs;
    if (TEMP_FAILURE_RETRY(fstatfs(fd, &fs)) != 0)
        return NULL;
    bool memory = fs.f_type == TMPFS_MAGIC;
    /* libpmem knows device DAX, and PMEM_IS_PMEM_FORCE=1 for those who know better. */
    return synchronous || memory || pmem_is_pmem(home, size) ? &medium_pmem : &medium_cache;
}
