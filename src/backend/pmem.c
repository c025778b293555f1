/*
 * Persistent memory (DAX with MAP_SYNC), or memory that stands in for it (tmpfs). libpmem chooses
 * clwb, clflushopt or clflush by the CPU. After its constructor libpmem takes no lock and allocates
 * nothing, so the handler may call it.
 */
#include "backend/backend.h"

#include "base/stream.h"

#include <libpmem.h>

/* Small commits copy no more than this at once. */
#define STREAM_MAX (16 * PM_LINE)

static void pmem_medium_write_back(struct medium *medium, const void *address, size_t size)
{
    (void)medium;
    pmem_flush(address, size);
}

static int pmem_medium_publish(struct medium *medium, const void *address, size_t size)
{
    pmem_medium_write_back(medium, address, size);
    return 0;
}

static int pmem_medium_copy(struct medium *medium, void *to, const void *from, size_t size)
{
    (void)medium;
    if (size <= STREAM_MAX && ((uintptr_t)to | (uintptr_t)from | size) % PM_LINE == 0)
        stream_lines(to, from, size); /* pmem_memcpy() takes longer to choose a method */
    else
        pmem_memcpy(to, from, size, PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NONTEMPORAL);
    return 0;
}

static int pmem_medium_fence(struct medium *medium)
{
    count(&medium->counts.fences);
    pmem_drain();
    return 0;
}

/* The length is metadata of the file system, in no cache line of the mapping. */
static int pmem_medium_sync_length(struct medium *medium)
{
    return file_sync(medium->fd);
}

const struct medium_ops medium_pmem = {
    .name = "pmem",
    .power_safe = true,
    .write_back = pmem_medium_write_back,
    .publish = pmem_medium_publish,
    .copy = pmem_medium_copy,
    .fence = pmem_medium_fence,
    .settle = pmem_medium_fence,
    .sync_length = pmem_medium_sync_length,
};
