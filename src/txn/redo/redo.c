/* The redo engine: its tables, what it does at a store, at close and when the log is voided. */
#define _GNU_SOURCE
#include "txn/redo/redo.h"

#include "base/error.h"
#include "txn/recovery.h"
#include "txn/sums.h"

#include <errno.h>
#include <stdlib.h>

/* ---- tables ---------------------------------------------------------------------------------- */

static int redo_load(struct txn *t, const struct txn_options *options)
{
    struct tables *tables = &t->c->tables;
    struct redo *r = calloc(1, sizeof *r);
    if (!r)
        return pm__fail_system(ENOMEM, "%s: no memory for the redo engine", t->c->path);
    t->own = r;
    *r = (struct redo){
        .changes = {.runs = tables_take(tables, tracker_marks_max(t->c) * sizeof *r->changes.runs),
                    .fresh =
                        tables_take(tables, tracker_marks_max(t->c) * sizeof *r->changes.fresh),
                    .clears = tables_take(tables, t->c->segments_max * sizeof *r->changes.clears)},
        .private_max = options->private_max >> PM_PAGE_SHIFT,
        .run = 1,
        .committed = t->epoch - 1,
        .durable = t->epoch - 1,
        .proved = t->epoch - 1,
        .reusable = t->epoch - 1,
        .sync_lock = PTHREAD_MUTEX_INITIALIZER,
        .synced = PTHREAD_COND_INITIALIZER,
    };
    if (redo_on_file(t)) {
        r->private_max /= 2; /* a page has two copies there, in view and home */
        queue_forget(&t->c->medium, t->c->home, container_bytes(t->c)); /* queued by recovery */
        queue_set_epoch(&t->c->medium, t->epoch);
    }
    return redo_log_load(t);
}

static void redo_unload(struct txn *t)
{
    struct redo *r = redo_of(t);
    if (!r)
        return;
    redo_log_unload(t);
    pthread_mutex_destroy(&r->sync_lock);
    pthread_cond_destroy(&r->synced);
    free(r);
    t->own = NULL;
}

/* ---- stores ---------------------------------------------------------------------------------- */

static int redo_open_page(struct txn *t, uint32_t page)
{
    return redo_open(t, page, true);
}

static int redo_open_marked(struct txn *t, uint32_t page)
{
    return redo_open(t, page, false);
}

static bool all_open(struct txn *t, uint32_t first, uint32_t last)
{
    while (first <= last && page_has(&t->pages, first, PAGE_OPEN))
        first++;
    return first > last;
}

static int open_all(struct txn *t, uint32_t first, uint32_t last)
{
    int error = 0;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    for (uint32_t page = first; page <= last && error == 0; page++)
        if (!(t->pages.flags[page] & PAGE_OPEN))
            error = redo_open(t, page, !t->tracker.stores);
    lock_release_masked(&t->lock, &saved);
    return error;
}

/* If all pages are open, do not take the lock. Its two system calls would be most of the cost where
 * stores are announced by hand. */
static int redo_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint32_t first = (uint32_t)(offset >> PM_PAGE_SHIFT);
    uint32_t last = (uint32_t)((offset + bytes - 1) >> PM_PAGE_SHIFT);
    return all_open(t, first, last) ? 0 : open_all(t, first, last);
}

static int redo_close(struct txn *t)
{
    redo_write_back(t);
    (void)redo_sync(t, t->epoch - 1);
    return txn_check_medium(t); /* the medium may have failed with more than the awaited records */
}

static int redo_drain(struct txn *t)
{
    if (redo_on_file(t))
        return redo_log_drain(t);
    uint64_t committed = atomic_load(&redo_of(t)->committed);
    redo_write_back(t);
    int error = sums_publish(t, committed);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error == 0)
        error = publish_base_epoch(t, committed);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error == 0)
        atomic_store(&redo_of(t)->reusable, committed);
    return error;
}

static void redo_restart(struct txn *t)
{
    redo_of(t)->log.segment = t->log.half[0].segments[0];
    redo_of(t)->log.end = 0;
}

const struct engine engine_redo = {
    .name = "redo",
    .log_bit = BASE_REDO,
    .recover = redo_recover,
    .in_place = false,
    .load = redo_load,
    .unload = redo_unload,
    .adopt = redo_adopt,
    .open_page = redo_open_page,
    .open_marked = redo_open_marked,
    .dirty = redo_dirty,
    .reserve = redo_reserve,
    .commit = redo_commit,
    .wait = redo_wait,
    .rollback = redo_rollback,
    .close = redo_close,
    .drain = redo_drain,
    .restart = redo_restart,
};
