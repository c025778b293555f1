/* Volatile memory, nothing to commit. */
#include "structures/peer.h"
#include "structures/store.h"

const char *const peer_name = "malloc";
const size_t peer_preload_batch = 1000;

pm_container *store_open(const char *path)
{
    (void)path;
    return NULL;
}

void store_commit(pm_container *c)
{
    (void)c;
}

void store_close(pm_container *c)
{
    (void)c;
}
