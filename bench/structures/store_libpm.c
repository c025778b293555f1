/* A container in the mode that this program is built for. */
#include "harness/mode.h"
#include "structures/peer.h"
#include "structures/store.h"

const char *const peer_name = BENCH_MODE;

/* All in one transaction: everything is fresh then, and nothing has to be logged. */
const size_t peer_preload_batch = SIZE_MAX;

pm_container *store_open(const char *path)
{
    struct pm_options options = mode_options();
    pm_container *c = pm_open(path, &options);
    if (!c)
        peer_fail("pm_open", pm_errormsg());
    return c;
}

void store_commit(pm_container *c)
{
    if (pm_commit(c) != 0)
        peer_fail("pm_commit", pm_errormsg());
}

bool store_read_counts(pm_container *c, struct peer_counts *counts)
{
    struct pm_stats stats = {.size = sizeof stats};
    if (pm_stats(c, &stats) != 0)
        peer_fail("pm_stats", pm_errormsg());
    *counts = (struct peer_counts){.commits = stats.commits,
                                   .bytes_logged = stats.bytes_logged,
                                   .lines_flushed = stats.lines_flushed};
    return true;
}

void store_close(pm_container *c)
{
    if (pm_check(c) != 0)
        peer_fail("pm_check", pm_errormsg());
    if (pm_close(c) != 0)
        peer_fail("pm_close", pm_errormsg());
}
