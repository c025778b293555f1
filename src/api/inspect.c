/* Statistics, checks, messages, version. */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

static void count_segments(const struct container *c, struct pm_stats *s)
{
    for (uint32_t i = 0, n = atomic_load(&c->segments); i < n; i++)
        switch (segment_kind(shadow_table(c)[i])) {
        case SEGMENT_FREE:
            s->segments_free++;
            break;
        case SEGMENT_LOG:
            s->segments_log++;
            break;
        case SEGMENT_META:
            break;
        case SEGMENT_MAP:
            s->segments_map++;
            break;
        default:
            s->segments_data++;
        }
}

int pm_stats(pm_container *c, struct pm_stats *stats)
{
    DEFER_CANCELLATION;
    if (api_enter(c) != 0)
        return -1;
    if (!stats || stats->size == 0 || stats->size > sizeof *stats)
        return pm__fail(EINVAL,
                        "%s: stats.size must be sizeof(struct pm_stats); compiled with "
                        "another libpm.h?",
                        c->container.path);
    struct txn *t = &c->txn;
    const struct medium *medium = &c->container.medium;
    sigset_t saved;
    lock_acquire(&c->allocator.lock);
    lock_acquire_masked(&t->lock, &saved);
    struct pm_stats s = {
        .size = stats->size,
        .epoch = t->epoch,
        .commits = t->commits,
        .rollbacks = c->allocator.rollbacks,
        .rounds = counted(&medium->counts.rounds),
        .fences = counted(&medium->counts.fences),
        .lines_flushed = medium->counts.lines_flushed,
        .bytes_logged = medium->counts.bytes_copied,
        .faults = t->faults,
        .pages_logged = t->pages_logged,
        .pages_ahead = t->pages_ahead,
        .pages_evicted = t->pages.evicted,
        .lines_logged = t->lines_logged,
        .bytes_fresh = t->bytes_fresh,
        .pages_private = t->pages.private_count,
        .pages_open = t->pages.count,
        .file_bytes = container_file_bytes(&c->container),
        .recovery_ns = t->recovery.ns,
        .recovered_pages = t->recovery.pages,
        .recovery_bytes = t->recovery.bytes,
        .pointers_moved = c->container.pointers_moved,
        .pointers_freed = c->discovery.freed_ever,
        .touches = t->touches,
        .recovered = t->recovery.recovered,
        .power_safe = medium->ops->power_safe,
        .base = c->container.base,
        .movable = c->container.movable == MOVABLE_NOW,
        .moved = c->container.translated,
        .medium = medium->ops->name,
        .engine = t->engine->name,
        .tracker = t->tracker.stores ? "stores" : "faults",
    };
    count_segments(&c->container, &s);
    lock_release_masked(&t->lock, &saved);
    lock_release(&c->allocator.lock);
    memcpy(stats, &s, stats->size);
    return 0;
}

void *pm_next_object(pm_container *c, const void *previous, size_t *size)
{
    DEFER_CANCELLATION;
    if (api_enter(c) != 0)
        return NULL;
    if (previous && !container_holds(&c->container, previous))
        return pm__fail_null(EINVAL, "%s: %p is not in the container", c->container.path, previous);
    uint64_t offset = previous ? (uint64_t)((const char *)previous - c->container.base) + 1 : 0;
    uint64_t bytes = 0;
    lock_acquire(&c->allocator.lock);
    bool found = allocator_next_object(&c->allocator, &offset, &bytes);
    lock_release(&c->allocator.lock);
    if (found && size)
        *size = bytes;
    return found ? c->container.base + offset : NULL;
}

int pm_check(pm_container *c)
{
    DEFER_CANCELLATION;
    if (api_enter(c) != 0 || pointers_check_tables(&c->allocator) != 0 || txn_check_log(&c->txn) != 0)
        return -1;
    return pointers_check(&c->allocator, api_discovers(c) ? discovery_lets_lead_out : NULL);
}

const char *pm_errormsg(void)
{
    return pm__message();
}

const char *pm_version(void)
{
    return STRING(PM_VERSION_MAJOR) "." STRING(PM_VERSION_MINOR) "." STRING(PM_VERSION_PATCH);
}
