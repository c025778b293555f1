/*
 * libpm maps all its memory here, because MADV_DONTFORK belongs to the mapping and not to the file. If
 * one mapping lacked it, a child could store into its parent's container.
 */
#define _GNU_SOURCE
#include "backend/backend.h"

#include "base/bits.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

void *map_reserve(void *address, size_t size)
{
    int fixed = address ? MAP_FIXED_NOREPLACE : 0;
    void *p =
        mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    if (p != MAP_FAILED && address && p != address) { /* kernels before 4.17 take it as a hint */
        munmap(p, size);
        errno = EEXIST;
        return MAP_FAILED;
    }
    return p;
}

int map_reserve_again(void *address, size_t size)
{
    void *p = mmap(address, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return p == MAP_FAILED ? -errno : 0;
}

/* Open a mapping that was made without access. The kernel locks each new mapping of a process that has
 * called mlockall(MCL_FUTURE). It fills a locked mapping at once when the mapping may be accessed. */
static int unlock_and_open(void *p, size_t size)
{
    return munlock(p, size) == 0 ? mprotect(p, size, PROT_READ | PROT_WRITE) : -1;
}

/* Zeroed memory of which little will be used. It is never locked, because locking would fill it. */
static void *map_sparse(void *address, size_t size, int flags)
{
    void *p =
        mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (p == MAP_FAILED || unlock_and_open(p, size) == 0)
        return p;
    int error = errno;
    if (!(flags & MAP_FIXED)) /* reserved space stays reserved */
        munmap(p, size);
    errno = error;
    return MAP_FAILED;
}

void *map_table(size_t size)
{
    void *p = map_sparse(NULL, size, 0);
    if (p != MAP_FAILED)
        madvise(p, size, MADV_DONTFORK);
    return p;
}

int map_table_at(void *address, size_t size)
{
    void *p = map_sparse(address, size, MAP_FIXED_NOREPLACE);
    if (p == MAP_FAILED)
        return -errno;
    int error = p != address ? -EEXIST /* kernels before 4.17 take it as a hint */
                : madvise(p, size, MADV_DONTFORK) != 0 ? -errno
                                                       : 0;
    if (error != 0)
        munmap(p, size);
    return error;
}

int map_inherited(void *address, size_t size)
{
    return map_sparse(address, size, MAP_FIXED) == MAP_FAILED ? -errno : 0;
}

void *map_inherited_table(size_t size)
{
    void *p = map_sparse(NULL, size, 0);
    return p == MAP_FAILED ? NULL : p;
}

int map_clear_table(void *address, size_t size)
{
    if (madvise(address, size, MADV_DONTNEED) == 0)
        return 0;
    /* Locked memory, perhaps. */
    void *p = map_sparse(address, size, MAP_FIXED);
    return p != MAP_FAILED && madvise(p, size, MADV_DONTFORK) == 0 ? 0 : -errno;
}

void map_read_singly(void *address, size_t size)
{
    (void)madvise(address, size, MADV_RANDOM);
}

void map_fetch(void *address, size_t size)
{
    char *page = (char *)align_down((uintptr_t)address, PM_PAGE);
    (void)madvise(page, (size_t)((char *)address + size - page), MADV_WILLNEED);
}

void map_small_pages(void *address, size_t size)
{
    (void)madvise(address, size, MADV_NOHUGEPAGE); /* kernels without huge pages refuse */
}

bool map_is_synchronous(int fd)
{
    void *p = mmap(NULL, 1, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    if (p == MAP_FAILED)
        return false;
    munmap(p, 1);
    return true;
}

int map_file(enum map_kind kind, void *address, size_t size, int fd, uint64_t offset,
             bool synchronous)
{
    /* A locked copy would have private pages at once, and none would be read through to the file. */
    bool opens = kind == MAP_COPY || kind == MAP_HOME_ABSENT; /* when it is not locked any more */
    int protection = kind == MAP_VIEW_SHARED || kind == MAP_VIEW_COPY ? PROT_READ
                     : kind == MAP_VIEW_MEMORY || opens               ? PROT_NONE
                                                                      : PROT_READ | PROT_WRITE;
    int flags = kind == MAP_COPY || kind == MAP_VIEW_COPY ? MAP_PRIVATE | MAP_NORESERVE
                : synchronous                             ? MAP_SHARED_VALIDATE | MAP_SYNC
                                                          : MAP_SHARED;
    void *p = mmap(address, size, protection, flags | MAP_FIXED, fd, (off_t)offset);
    if (p == MAP_FAILED || (opens && unlock_and_open(p, size) != 0) ||
        (kind == MAP_VIEW_COPY && munlock(p, size) != 0))
        return -errno;
    return madvise(p, size, MADV_DONTFORK) == 0 ? 0 : -errno;
}

void map_populate(const struct medium *medium, void *address, size_t size)
{
    if (medium->ops->power_safe && !medium->queue)
        madvise(address, size, MADV_POPULATE_WRITE);
}
