/*
 * Giving the end of the file back while a container is in use.
 *
 * Recovery refuses a table or a record that names anything beyond the end of the file. So three steps come
 * in this order:
 *
 *   1  Home has the last commit, and is made durable. A round of its own raises the base epoch, which
 *      voids the log. A clean close does the same.
 *   2  The log may have grown to wherever there was room. It becomes as small as a new container's log,
 *      by another round.
 *   3  The file's end behind the last segment in use is cut off.
 *
 * A crash in between leaves a container that was closed cleanly, or one whose log is longer than necessary.
 * Under undo the log has images for the open epoch. So the epoch changes, as if the container had been
 * opened again.
 *
 * This file also cuts off growth of the file for a call that failed. Nothing there has ever been committed,
 * so nothing need be made durable first, but a failed commit's record is erased. Only what the open
 * transaction remembers of these pages is forgotten.
 */
#include "txn/txn.h"

#include "address/translation.h"
#include "base/error.h"
#include "txn/copy.h"

#include <assert.h>
#include <errno.h>

/* The number of segments up to the last one in use. */
static uint32_t segments_used(const struct txn *t)
{
    uint32_t end = atomic_load(&t->c->segments);
    while (home_table(t->c)[end - 1] == 0 && shadow_table(t->c)[end - 1] == 0)
        end--;
    return end;
}

static int cut_log(struct txn *t)
{
    pages_unlist(&t->pages);
    int error = segments_cut_log(t);
    log_restart(&t->log);
    if (t->engine->restart)
        t->engine->restart(t);
    return error;
}

static int cut_off(struct txn *t, uint32_t end)
{
    uint32_t gone = atomic_load(&t->c->segments) - end;
    uint32_t page = end * pages_per_segment(t->c), pages = gone * pages_per_segment(t->c);
    int error = 0;
    if (gone > 0 && t->engine->release)
        error = t->engine->release(t, page, pages);
    if (gone > 0 && error == 0)
        error = t->translation ? translation_forget(t->translation, page, pages)
                               : pages_close(&t->pages, page, pages);
    if (error != 0)
        return error;
    pages_forget(&t->pages, page, pages);
    assert(t->free_hint <= end); /* no segment below the hint is free */
    return container_shrink(t->c, end);
}

static int shrink(struct txn *t)
{
    int error = pages_close_listed(&t->pages); /* the images of these pages go with the log */
    if (error == 0 && t->engine->drain)
        error = t->engine->drain(t);
    if (error == 0)
        error = cut_log(t);
    if (error == 0)
        error = cut_off(t, segments_used(t));
    if (error == 0 || txn_check_medium(t) != 0)
        return error == 0 ? 0 : -1;
    return pm__fail_system(
        -error, "%s: cannot write back, unmap, and give back the space at its end", t->c->path);
}

int txn_shrink(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int result = t->copy ? txn_refuse_beside_copy(t) : shrink(t);
    lock_release_masked(&t->lock, &saved);
    return result;
}

int txn_compact_file(struct txn *t)
{
    sigset_t saved;
    if (!t->engine->compact)
        return 0;
    lock_acquire_masked(&t->lock, &saved);
    int error = txn_retract(t);
    if (error == 0)
        error = t->engine->compact(t);
    bool told = error == -EBADMSG && t->engine->check(t) != 0; /* where the damage is */
    lock_release_masked(&t->lock, &saved);
    if (error == 0 || told || txn_check_medium(t) != 0)
        return error == 0 ? 0 : -1;
    return container_fail(
        t->c, -error,
        "%s: compacted, but cannot write its records anew, and give back the space at its end",
        t->c->path);
}

/* If this fails the file stays longer, as after a call that succeeded. While a copy is being made the
 * file stays longer too, because the copy reads home without the lock. So it does while a record that failed
 * cannot be erased: it may be whole, and name these segments. */
void txn_cut_tail(struct txn *t, uint32_t segments)
{
    uint32_t end = (uint32_t)max_u64(segments, segments_used(t));
    if (t->copy || end == atomic_load(&t->c->segments) || medium_failed(&t->c->medium) != 0)
        return;
    if (txn_retract(t) != 0)
        return;
    uint32_t page = end * pages_per_segment(t->c);
    tracker_forget(&t->tracker, &t->pages, page);
    pages_unlist_from(&t->pages, page);
    (void)cut_off(t, end);
}

void txn_undo_growth(struct txn *t, struct txn_call call)
{
    if (atomic_load(&t->c->segments) == call.segments)
        return;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    if (t->epoch == call.epoch)
        txn_cut_tail(t, call.segments);
    lock_release_masked(&t->lock, &saved);
}
