/*
 * Giving the end of the file back, in the middle of a container's life.
 *
 * Recovery refuses a table or a record that names what is beyond the end of the file. So before the
 * end is cut off
 *
 *   1  home is what the last commit made it, and durable; the base epoch voids the log, by a round
 *      of its own: as a clean close does it
 *   2  the log, which has grown to wherever there was room, becomes as small as a new container's, by
 *      another round
 *   3  what is behind the last segment in use goes
 *
 * A crash in between leaves a container that was closed cleanly, or one whose log is longer than it
 * need be. Under undo, where the log has images for the open epoch, that is another one afterwards,
 * as if the container had been opened again.
 *
 * And giving back what a call that failed has made the file grow by. Nothing there has ever been
 * committed, so nothing need be made durable first: only what the open transaction remembers of these
 * pages goes.
 */
#include "txn/txn.h"

#include "base/error.h"
#include "txn/copy.h"
#include "txn/moved.h"

#include <assert.h>

/* Segments up to the last that is in use. */
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
    if (gone > 0)
        error = t->moved ? moved_forget(t, page, pages) : pages_close(&t->pages, page, pages);
    if (error != 0)
        return error;
    pages_forget(&t->pages, page, pages);
    assert(t->free_hint <= end); /* no segment below it is free */
    return container_shrink(t->c, end);
}

static int shrink(struct txn *t)
{
    int error = pages_close_listed(&t->pages); /* their images go with the log */
    if (error == 0)
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

/* Should it fail the file stays longer, as after a call that succeeded. So it does while a copy is being
 * made, which reads home without the lock. */
void txn_cut_tail(struct txn *t, uint32_t segments)
{
    uint32_t end = (uint32_t)max_u64(segments, segments_used(t));
    if (t->copy || end == atomic_load(&t->c->segments) || medium_failed(&t->c->medium) != 0)
        return;
    uint32_t page = end * pages_per_segment(t->c);
    if (t->engine->forget)
        t->engine->forget(t, page);
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
