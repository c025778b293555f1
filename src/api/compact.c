/* Compaction. */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "discovery/exclusions.h"
#include "pointer/compact.h"
#include "txn/copy.h"

#include <errno.h>
#include <string.h>

static struct pm_space measure(pm_container *c)
{
    lock_acquire(&c->allocator.lock);
    struct occupancy o = allocator_occupancy(&c->allocator);
    lock_release(&c->allocator.lock);
    struct pm_space space = {.object_bytes = o.object_bytes,
                             .data_bytes = o.segments << c->container.segment_shift,
                             .file_bytes = container_file_bytes(&c->container)};
    if (space.data_bytes > 0)
        space.fragmentation = 1 - (double)space.object_bytes / (double)space.data_bytes;
    return space;
}

static int check(pm_container *c, const struct pm_compacted *result)
{
    if (txn_is_copied(&c->txn))
        return txn_refuse_beside_copy(&c->txn);
    if (result && (result->size == 0 || result->size > sizeof *result))
        return pm__fail(EINVAL,
                        "%s: result.size must be sizeof(struct pm_compacted); compiled with "
                        "another libpm.h?",
                        c->container.path);
    if (c->container.movable != MOVABLE_NOW)
        return pm__fail(ENOTSUP,
                        "%s: cannot be compacted, for a program without PM_MOVABLE has stored "
                        "here, and nobody knows where its pointers are; copy what is reachable to "
                        "a new container that is only opened with PM_MOVABLE",
                        c->container.path);
    return 0;
}

static uint64_t segments_freed(const pm_container *c, const struct pm_compacted *done)
{
    uint64_t before = done->before.data_bytes, after = done->after.data_bytes;
    return before > after ? (before - after) >> c->container.segment_shift : 0;
}

/* At last, for under the log engine it writes all contents anew. */
static int compact_file(pm_container *c)
{
    lock_acquire(&c->allocator.lock);
    int result = txn_compact_file(&c->txn);
    lock_release(&c->allocator.lock);
    return result;
}

/* Repeat while the file gets smaller: the room of the log is free only after a compaction. */
static int compact_all(pm_container *c, const struct compact_caller *caller,
                       struct pm_compacted *done)
{
    struct compact_report report;
    uint64_t before;
    int failed;
    do {
        before = container_bytes(&c->container);
        failed = pointers_compact(&c->allocator, caller, &report);
        done->objects_moved += report.objects;
        done->bytes_moved += report.bytes;
        done->pointers_redirected += report.pointers;
        done->commits += report.commits;
    } while (failed == 0 && report.objects > 0 && container_bytes(&c->container) < before);
    return failed == 0 ? compact_file(c) : failed;
}

struct follower {
    pm_container *c;
    bool hides; /* some fields are excluded */
    pm_moved *moved;
    void *context;
};

static int commit_step(void *context)
{
    const struct follower *f = context;
    uint64_t epoch;
    return api_commit_transaction(f->c, &epoch) == 0 ? txn_wait(&f->c->txn, epoch) : -1;
}

/* The exclusions are told of moved objects first, all of them. Then the program is, and sees its fields. */
static void follow(void *context, const struct move *moves, uint32_t count)
{
    const struct follower *f = context;
    char *base = f->c->container.base;
    for (uint32_t i = 0; i < count && f->hides; i++)
        exclusions_follow(&f->c->container, base + moves[i].from, moves[i].bytes, base + moves[i].to);
    if (!f->moved)
        return;
    if (f->hides)
        exclusions_show(&f->c->txn, false);
    for (uint32_t i = 0; i < count; i++)
        f->moved(f->context, base + moves[i].from, base + moves[i].to, moves[i].bytes);
    if (f->hides)
        exclusions_hide(&f->c->txn);
}

/* Meanwhile excluded fields are NULL, as in the file. Otherwise they would fail compaction's commits. */
static int compact_hiding(struct follower *f, struct pm_compacted *done)
{
    const struct compact_caller caller = {commit_step, f->hides || f->moved ? follow : NULL, f};
    if (!f->hides)
        return compact_all(f->c, &caller, done);
    exclusions_hide(&f->c->txn);
    int failed = compact_all(f->c, &caller, done), error = errno;
    exclusions_show(&f->c->txn, true); /* moves so far are durable, even if a later one failed */
    errno = error;
    return failed;
}

ROOTS_ENTRY int pm_compact(pm_container *c, pm_moved *moved, void *context,
                           struct pm_compacted *result)
{
    DEFER_CANCELLATION;
    UNCANCELLED; /* `moved` may have a cancellation point */
    if (api_enter_writing(c) != 0 || check(c, result) != 0 || api_commit(c, roots_caller()) != 0)
        return -1;
    /* Objects that damage hides would be overwritten. */
    if (pointers_check_tables(&c->allocator) != 0)
        return -1;
    struct pm_compacted done = {.size = result ? result->size : 0, .before = measure(c)};
    struct follower follower = {c, api_discovers(c) && exclusions_any(), moved, context};
    int failed = compact_hiding(&follower, &done), error = errno;
    done.after = measure(c);
    done.segments_freed = segments_freed(c, &done);
    if (result)
        memcpy(result, &done, result->size);
    errno = error;
    return failed;
}
