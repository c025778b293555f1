/* The log engine: what it does besides commit and recovery. */
#include "txn/log/deltas.h"

#include "base/error.h"
#include "txn/recovery.h"
#include "txn/sums.h"

#include <errno.h>
#include <string.h>

static int log_engine_load(struct txn *t, const struct txn_options *options)
{
    if (t->c->watcher >= 0) /* half for home, and half for private pages of the view */
        log_set_bound(t, options->private_max / 2);
    log_engine_of(t)->live_percent = options->live_percent;
    log_engine_of(t)->chunks_min = (uint32_t)(options->initial_size / t->c->chunk_size);
    if (t->c->readonly)
        return 0;
    view_load(t, t->c->watcher >= 0 ? options->private_max / 2 : options->private_max);
    t->view.logs_fresh = t->view.home_is_log = true;
    rounds_open(&t->rounds, t->epoch - 1);
    int error = log_map_view(t);
    return error == 0 ? 0 : pm__fail_system(-error, "%s: cannot map", t->c->path);
}

static void log_engine_unload(struct txn *t)
{
    rounds_close(&t->rounds);
    log_tables_close(t);
}

/* L11: lines of new metadata that the record must have because the log has older ones. */
static uint64_t cleared_lines(const struct txn *t)
{
    uint64_t lines = 0;
    for (const struct journal_region *r = t->journal.dirty; r; r = r->next) {
        uint64_t end = r->offset + r->words * sizeof(uint64_t);
        for (uint64_t at = r->offset; at < end && r->clear; at += PM_LINE)
            lines += log_may_have_pieces(t, at / PM_LINE);
    }
    return lines;
}

/* W2: lines that the record must have because objects were allocated there, stored to or not. Under `stores`
 * these are marked. -errno */
static int count_given(struct txn *t, uint64_t *lines)
{
    const struct log_engine *k = log_engine_of(t);
    *lines = 0;
    if (t->tracker.stores)
        return 0;
    const struct commit_words w = view_words(t);
    int error = log_find_owners(t, &w);
    *lines = log_lines_of(k->given.items, k->given.count);
    return error;
}

/* Room in the file for the record of the open transaction, when it has stored to `pages` more pages. A page
 * that is listed counts whole, and each journaled word counts as a line. */
static int log_engine_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages,
                              uint64_t extra_words)
{
    (void)extra_pages; /* these pages are marked or listed, and counted as such */
    uint64_t meta = (uint64_t)t->c->meta_segments << t->c->segment_shift;
    if (pages > (t->c->max_size - meta) >> PM_PAGE_SHIFT)
        return container_exceeds_max(t->c);
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    uint64_t marked = t->tracker.count + t->tracker.object_lines;
    uint64_t data = marked + (t->pages.count + pages) * PM_PAGE_LINES;
    uint64_t words = journal_count(&t->journal).words + extra_words;
    const struct log_engine *k = log_engine_of(t);
    uint64_t given;
    int error = count_given(t, &given);
    words += cleared_lines(t);
    data += given + log_lines_of(k->filled.items, k->filled.count);
    if (t->tracker
            .kinds) /* words of the pointer map: one for each line, or those of a whole page */
        words +=
            marked + pages * PM_PAGE_LINES + t->pages.count * (PM_PAGE_LINES / MAP_WORD_LINES + 2);
    if (error == 0)
        error = log_make_room(t, data + words);
    lock_release_masked(&t->lock, &saved);
    return error;
}

/* A commit logs the lines that differ from home. So home must have what the log has. The memory of these
 * pages may have been cut off since, or cleared for metadata that was rolled back. Fill it in before an
 * object can be there. */
static int log_engine_adopt(struct txn *t, uint32_t first, uint32_t count, uint32_t header)
{
    uint64_t line = (uint64_t)first * PM_PAGE_LINES;
    int error = log_unmap_range(t, first, count);
    if (error != 0)
        return error;
    for (uint64_t end = line + (uint64_t)count * PM_PAGE_LINES; line < end; line++)
        if (log_entry(t, line) != 0)
            log_read_line(t, line, t->c->home + line * PM_LINE);
    return view_adopt(t, first, count, header);
}

static int log_rollback(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int error = log_discard_early(t);
    if (error == 0)
        error = log_unfill(t);
    lock_release_masked(&t->lock, &saved);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot open a page to restore it", t->c->path);
    int result = view_rollback(t);
    if (result != 0)
        return result;
    lock_acquire_masked(&t->lock, &saved);
    log_end_filled(t, false);
    log_keep_bound(t);
    lock_release_masked(&t->lock, &saved);
    return 0;
}

static int log_engine_close(struct txn *t)
{
    bool is_well = rounds_sync(t, t->epoch - 1) == 0 && medium_failed(&t->c->medium) == 0;
    bool has_checkpoints = log_engine_of(t)->checkpoint.interval != 0;
    int error = is_well && has_checkpoints ? log_checkpoint_close(t) : 0;
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot write back, which the next pm_open() will do",
                               t->c->path);
    return txn_check_medium(t); /* it may have failed with more than the awaited records */
}

/* L6: the base says what the last commit was, and no more. */
static int log_engine_end(struct txn *t)
{
    uint64_t last = t->epoch - 1;
    int error = sums_publish(t, last);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error == 0)
        error = log_publish_state(t, last, MARK_CLOSED);
    return error == 0 ? medium_fence(&t->c->medium) : error;
}

/* W2. If memory is bounded, home has lost what a private page of the view still has of a freed object. Lines
 * of early parts are left until the commit, but they are in the file. */
static bool takes_whole(const struct txn *t, uint64_t line)
{
    const struct early_part *e = log_early_of(t, (uint32_t)(line / PM_PAGE_LINES));
    return log_is_left(t, line) && (!e || e->is_lost);
}

static void list_free(const struct txn *t, uint64_t *bits)
{
    const struct chunk_list *free = &log_engine_of(t)->free;
    for (uint32_t i = 0; i < free->count; i++)
        bits[free->items[i] / 64] |= UINT64_C(1) << free->items[i] % 64;
}

const struct engine engine_log = {
    .name = "log",
    .in_place = false,
    .load = log_engine_load,
    .unload = log_engine_unload,
    .adopt = log_engine_adopt,
    .open_page = log_open_page,
    .open_marked = log_open_marked,
    .dirty = log_dirty,
    .takes_whole = takes_whole,
    .release = log_release,
    .reserve = log_engine_reserve,
    .commit = log_commit,
    .wait = rounds_wait,
    .rollback = log_rollback,
    .fill = log_fill,
    .rebase = log_rebase,
    .retract = log_erase_stale,
    .check = log_check,
    .close = log_engine_close,
    .end = log_engine_end,
    .list_free = list_free,
    .compact = log_compact,
};
