/* A container with the default options. */
#include "structures/peer.h"
#include "structures/store.h"

const char *const peer_name = "libpm";

/* All in one transaction: everything is fresh then, and nothing has to be logged. */
const size_t peer_preload_batch = SIZE_MAX;

pm_container *store_open(const char *path)
{
    pm_container *c = pm_open(path, &(struct pm_options){.size = sizeof(struct pm_options),
                                                         .flags = PM_CREATE | PM_EXCLUSIVE});
    if (!c)
        peer_fail("pm_open", pm_errormsg());
    return c;
}

void store_commit(pm_container *c)
{
    if (pm_commit(c) != 0)
        peer_fail("pm_commit", pm_errormsg());
}

void store_close(pm_container *c)
{
    if (pm_check(c) != 0)
        peer_fail("pm_check", pm_errormsg());
    if (pm_close(c) != 0)
        peer_fail("pm_close", pm_errormsg());
}
