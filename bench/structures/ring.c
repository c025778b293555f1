#include "structures/ring.h"

#include "structures/peer.h"

#include <libpmem.h>
#include <string.h>

static char *mapping, *ring, *outside;
static size_t mapped, at; /* where the next commit writes */

char *ring_open(const char *path, size_t more, char **source)
{
    mapped = more + RING_BYTES;
    mapping = pmem_map_file(path, mapped, PMEM_FILE_CREATE | PMEM_FILE_EXCL, 0600, NULL, NULL);
    if (!mapping)
        peer_fail("the log", pmem_errormsg());
    outside = aligned_alloc(RING_LINE, RING_BYTES);
    if (!outside)
        peer_fail("the log", "out of memory");
    memset(mapping, 0, mapped); /* so that no commit meets a page that is not there yet */
    memset(outside, 1, RING_BYTES);
    ring = mapping + more;
    *source = outside;
    return mapping;
}

size_t ring_bytes(void)
{
    size_t bytes = (peer_log_bytes + RING_LINE / 2) / RING_LINE * RING_LINE;
    if (bytes > RING_BYTES)
        peer_fail("the log", "a commit exceeds it");
    return bytes;
}

void ring_append(const char *from, size_t bytes)
{
    if (bytes > RING_BYTES - at)
        at = 0;
    pmem_memcpy(ring + at, from, bytes, PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NONTEMPORAL);
    at += bytes;
}

void ring_close(void)
{
    pmem_unmap(mapping, mapped);
    free(outside);
}
