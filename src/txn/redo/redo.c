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
    struct redo *r = calloc(1, sizeof *r);
    if (!r)
        return pm__fail_system(ENOMEM, "%s: no memory for the redo engine", t->c->path);
    t->own = r;
    view_load(t, options->private_max);
    rounds_open(&t->rounds, t->epoch - 1);
    if (redo_on_file(t)) {
        t->view.private_max /= 2; /* a page has two copies there, in view and home */
        queue_forget(&t->c->medium, t->c->home, container_bytes(t->c)); /* queued by recovery */
        queue_set_epoch(&t->c->medium, t->epoch);
    }
    t->view.logs_fresh = redo_on_file(t) || t->translation;
    return redo_log_load(t);
}

static void redo_unload(struct txn *t)
{
    struct redo *r = redo_of(t);
    if (!r)
        return;
    redo_log_unload(t);
    rounds_close(&t->rounds);
    free(r);
    t->own = NULL;
}

/* ---- close and drain -------------------------------------------------------------------------- */

static int redo_close(struct txn *t)
{
    redo_write_back(t);
    (void)rounds_sync(t, t->epoch - 1);
    return txn_check_medium(t); /* the medium may have failed with more than the awaited records */
}

static int redo_drain(struct txn *t)
{
    if (redo_on_file(t))
        return redo_log_drain(t);
    uint64_t committed = atomic_load(&t->rounds.committed);
    redo_write_back(t);
    int error = sums_publish(t, committed);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error == 0)
        error = publish_base_epoch(t, committed);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error == 0)
        atomic_store(&t->rounds.reusable, committed);
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
    .adopt = view_adopt,
    .open_page = view_open_page,
    .open_marked = view_open_marked,
    .dirty = view_dirty,
    .reserve = redo_reserve,
    .commit = redo_commit,
    .wait = rounds_wait,
    .rollback = view_rollback,
    .retract = redo_log_retract,
    .close = redo_close,
    .end = txn_end_home,
    .drain = redo_drain,
    .restart = redo_restart,
};
