/*
 * The floor: volatile memory, and at each commit what no redo log can save, the same bytes copied
 * past the cache into a log on the medium, in order, and one fence. It finds out nothing (the bytes
 * are always the same) and proves nothing (no checksum), and home is never written.
 */
#include "structures/peer.h"
#include "structures/store.h"

#include <libpmem.h>
#include <string.h>

enum {
    LINE = 64,
    RING = 16 << 20, /* bytes of the log, which starts over at its end */
};

const char *const peer_name = "floor";
const size_t peer_preload_batch = 1000;

static char *ring, *source;
static size_t at; /* where the next commit writes */

pm_container *store_open(const char *path)
{
    ring = pmem_map_file(path, RING, PMEM_FILE_CREATE | PMEM_FILE_EXCL, 0600, NULL, NULL);
    source = malloc(RING);
    if (!ring || !source)
        peer_fail("floor", pmem_errormsg());
    memset(ring, 0, RING); /* so that no commit meets a page that is not there yet */
    memset(source, 1, RING);
    return NULL;
}

void store_commit(pm_container *c)
{
    (void)c;
    size_t bytes = (peer_log_bytes + LINE / 2) / LINE * LINE;
    if (bytes > RING)
        peer_fail("floor", "a commit exceeds the log");
    if (bytes > RING - at)
        at = 0;
    pmem_memcpy(ring + at, source, bytes, PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NONTEMPORAL);
    pmem_drain();
    at += bytes;
}

bool store_read_counts(pm_container *c, struct peer_counts *counts)
{
    (void)c;
    (void)counts;
    return false;
}

void store_close(pm_container *c)
{
    (void)c;
    pmem_unmap(ring, RING);
    free(source);
}
