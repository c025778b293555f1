/*
 * Commit of the log engine. Each step that can fail comes before the first change. Small commits take these
 * steps in small.c.
 *
 *   1  Find what has changed: lines of data, and lines of metadata. Find which lines lose their owners.
 *   2  Void chunks that nobody needs, clean others, and plan the record.
 *   3  Write the record.
 *   4  While it is on its way, clear the marks.
 *   5  Fence, on pmem. On a file rounds_wait() does so later, for several commits at once.
 *   6  Bring the map and home up to date. Close cold pages.
 */
#include "txn/log/deltas.h"

#include "base/error.h"
#include "base/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- metadata -------------------------------------------------------------------------------- */

/* Add a line of metadata to the runs, behind those of data: `data` runs. The words of a line follow one
 * another. */
static inline void add_line(struct changes *ch, uint64_t data, uint64_t line, uint32_t changed)
{
    uint64_t last = ch->run_count > data ? ch->runs[ch->run_count - 1] : 0;
    if (last == 0 || run_line(last) + run_count(last) - 1 != line)
        changes_add(ch, data, line, changed);
    else
        ch->changed[ch->lines - 1] |= (uint8_t)changed;
}

/* Whether the words of [offset, end) are all zero, as they are after a clear. */
static bool is_clear(const struct txn *t, uint64_t offset, uint64_t end)
{
    uint64_t any = 0;
    for (; offset < end; offset += sizeof any)
        any |= *shadow_word(t->c, offset);
    return any == 0;
}

/* L11: lines of new metadata that stay clear, of which the log may have pieces of an earlier owner. Lines
 * with words are among the words. */
static void add_cleared(struct txn *t, uint64_t data, const struct record_clear *clear)
{
    uint64_t end = clear->offset + clear->bytes;
    for (uint64_t at = clear->offset; at < end; at += PM_LINE)
        if (log_may_have_pieces(t, at / PM_LINE) && is_clear(t, at, min_u64(at + PM_LINE, end)))
            add_line(&t->view.changes, data, at / PM_LINE, LINE_WORDS_ALL);
}

/* Add the lines of a commit's journaled words. No line of data is one of them, so the table has room. If some
 * metadata is new, home does not tell what the log has there. So all words of a line count then. */
static void collect_metadata(struct txn *t, const struct commit_words *w)
{
    struct changes *ch = &t->view.changes;
    uint64_t data = ch->run_count;
    for (uint64_t i = 0; i < w->counts.clears; i++)
        add_cleared(t, data, &w->clears[i]);
    for (uint64_t i = 0; i < w->counts.words; i++) {
        uint64_t offset = w->words[i].offset;
        add_line(ch, data, offset / PM_LINE,
                 w->counts.clears > 0 ? LINE_WORDS_ALL : 1u << offset % PM_LINE / sizeof(uint64_t));
    }
}

/* Let the view have a line to which perhaps nobody has come yet. -errno */
static int touch_line(struct txn *t, uint64_t line)
{
    uint32_t page = (uint32_t)(line / PM_PAGE_LINES);
    int error = 0;
    if (t->translation && !page_has(&t->pages, page, PAGE_TRANSLATED))
        error = translation_touch(t->translation, page);
    if (error == 0) /* home may be filled for it, which cannot be when the map is ahead */
        (void)*(const volatile char *)(t->c->base + line * PM_LINE);
    return error;
}

/* Lines that get an owner and may have old pieces are logged, stored to or not (W2 in owners.c). -errno */
static int add_given(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    struct changes *ch = &t->view.changes;
    const uint64_t *given = k->given.items, first = ch->run_count;
    int error = 0;
    if (k->given.count > 0) {
        log_take_lines(t, ch->runs, first);
        log_take_early(t);
    }
    for (uint64_t i = 0; i < k->given.count; i++)
        for (uint64_t line = run_line(given[i]), n = run_count(given[i]); n > 0 && error == 0;
             n--, line++)
            if (log_is_left(t, line)) {
                error = touch_line(t, line);
                changes_add(ch, first, line, LINE_WORDS_ALL);
                log_set_left(t, line, false);
            }
    return error;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* Past the cache: nobody reads home before the line changes again, or the cleaner comes. */
static void bring_home(struct txn *t, const uint64_t *runs, uint64_t count)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t line = run_line(runs[i]), n = run_count(runs[i]); n > 0; n--, line++)
            stream_line(t->c->home + line * PM_LINE, line_in_home_form(t, line, image));
}

static void finish(struct txn *t, const struct commit_words *w)
{
    const struct changes *ch = &t->view.changes;
    log_install(t);
    log_drop_lines(t, t->epoch);
    journal_apply(t->c, w->clears, w->counts.clears, w->words, w->counts.words);
    t->lines_logged += ch->lines + log_engine_of(t)->early_lines;
    log_end_filled(t, true);
    log_map_planned(t);
    view_end(t, w);
    log_keep_bound(t);
}

static int finish_unchanged(struct txn *t)
{
    log_end_filled(t, false);
    view_end_unchanged(t);
    log_keep_bound(t);
    return 0;
}

static int cannot_write(struct txn *t, uint64_t lines, int error)
{
    if (txn_check_medium(t) != 0)
        return -1;
    return container_fail_at(t->c, container_file_bytes(t->c), -error,
                             "cannot write a commit record of %" PRIu64
                             " bytes (commit again, or roll back)",
                             lines * PM_LINE);
}

/* The program goes on with what is left of the cleaner's chunk, and the cleaner with the program's. */
static void swap_streams(struct log_engine *k)
{
    uint32_t cleaner = k->open[LOG_CLEANER];
    k->open[LOG_CLEANER] = k->open[LOG_PROGRAM];
    k->open[LOG_PROGRAM] = cleaner;
}

static int plan_in_cleaners_chunk(struct txn *t, struct record_runs *runs)
{
    swap_streams(log_engine_of(t));
    return log_plan(t, runs);
}

/* Plan the record, with so many chunks left. If there are not as many, make room, as long as that works. */
static int plan_with_room(struct txn *t, struct record_runs *runs, uint32_t reserve)
{
    struct log_engine *k = log_engine_of(t);
    int error;
    do {
        k->reserve = reserve;
        error = log_plan(t, runs);
        k->reserve = LOG_RESERVE;
    } while (log_gains_room(t, error));
    return error;
}

/* If the disk is full, a commit that frees objects and allocates none takes a chunk of the reserve. It
 * leaves less than it found, but in other chunks. In its own chunk are deltas of lines all over the file.
 * When that is full, these deltas must go, whatever it costs. */
static int plan_in_reserve(struct txn *t, struct record_runs *runs)
{
    struct log_engine *k = log_engine_of(t);
    int error = plan_in_cleaners_chunk(t, runs);
    if (log_lacks_room(error)) {
        k->folds_all = true;
        error = plan_with_room(t, runs, LOG_RESERVE - 1);
        k->folds_all = false;
    }
    if (log_lacks_room(error)) /* meanwhile the cleaner may have a new one */
        error = plan_in_cleaners_chunk(t, runs);
    runs->borrows = k->free.count < LOG_RESERVE;
    return error;
}

/* Other commits go on in what is left of the cleaner's chunk, but not if that is all the reserve has. */
static int plan(struct txn *t, struct record_runs *runs)
{
    struct log_engine *k = log_engine_of(t);
    int error = plan_with_room(t, runs, LOG_RESERVE);
    if (!log_lacks_room(error))
        return error;
    if (t->freed == t->epoch && !k->gives)
        return plan_in_reserve(t, runs);
    return k->free.count >= LOG_RESERVE ? plan_in_cleaners_chunk(t, runs) : error;
}

/* What is left of a chunk of the reserve is for the cleaner, and for further commits that only free. */
static void return_chunk(struct txn *t, const struct record_runs *runs)
{
    if (runs->borrows)
        swap_streams(log_engine_of(t));
}

/* Out of line: a small commit then saves no registers for it. */
__attribute__((noinline)) static int commit_any(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    const struct changes *ch = &t->view.changes;
    (void)log_unfill_freed(t); /* home is right even if it fails, and the lines are nobody's */
    log_checkpoint(t);
    view_collect(t);
    struct commit_words w = view_words(t);
    int error = log_find_owners(t, &w);
    if (error == 0)
        error = log_unmap_freed_early(t);
    uint64_t stored_count = ch->run_count;
    log_add_filled(t);
    uint64_t given_from = ch->run_count;
    if (error == 0)
        error = add_given(t);
    uint64_t data_count = ch->run_count;
    collect_metadata(t, &w);
    if (w.counts.clears > 0)
        log_take_lines(t, ch->runs, ch->run_count);
    /* Even if values are early: they were freed again. A record of these alone would have no live line. Its
     * chunks could become void before there is a newer one. */
    if (ch->lines == 0 && error == 0)
        return finish_unchanged(t);
    struct record_runs runs = {.runs = ch->runs,
                               .count = ch->run_count,
                               .data_count = data_count,
                               .stored_count = stored_count,
                               .lines = ch->lines,
                               .metadata_from = t->c->shadow,
                               .is_transaction = true};
    if (error == 0)
        error = log_void_chunks(t);
    if (error == 0) {
        log_clean(t, ch->lines + 1);
        error = log_split(t, &runs, ch->changed);
    }
    if (error == 0 && runs.count == 0 && runs.deltas->words == 0)
        return finish_unchanged(t); /* all were stray */
    if (error == 0)
        error = plan(t, &runs);
    if (error == 0)
        error = log_write(t, &runs, t->c->pointers_base);
    if (error != 0) {
        return_chunk(t, &runs);
        log_untake_lines(t, ch->runs, ch->run_count);
        log_untake_early(t);
        log_refill_dropped(t);
        return cannot_write(t, ch->lines, error);
    }
    view_leave(t);
    rounds_note(t, k->fenced); /* L1 */
    bring_home(t, ch->runs, stored_count);
    bring_home(t, ch->runs + given_from, data_count - given_from);
    finish(t, &w);
    return_chunk(t, &runs);
    return 0;
}

int log_commit(struct txn *t)
{
    int error;
    if (log_cleans_always)
        log_choose_any(t);
    if (!log_commit_small(t, &error))
        return commit_any(t);
    return error == 0 ? 0 : cannot_write(t, t->view.changes.lines, error);
}

/* Lines of these runs that have pieces. Others have no pointers, and perhaps no owner (W1). The record has at
 * least one line: the root. -ENOMEM */
static int list_moved(struct txn *t, const uint64_t *runs, uint64_t count,
                      struct record_runs *record)
{
    struct log_engine *k = log_engine_of(t);
    int error = 0;
    k->split_runs.count = 0;
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t line = run_line(runs[i]), n = run_count(runs[i]); n > 0 && error == 0;
             n--, line++)
            if (log_entry(t, line) != 0) {
                error = log_list_line(&k->split_runs, 0, line);
                record->lines++;
            }
    if (record->lines == 0 && error == 0) {
        error = log_list_line(&k->split_runs, 0, t->root.offset / PM_LINE);
        record->lines = 1;
    }
    record->runs = k->split_runs.items;
    record->count = k->split_runs.count;
    return error;
}

int log_rebase(struct txn *t, const uint64_t *runs, uint64_t count, uint64_t base, bool *recorded)
{
    struct record_runs record = {.metadata_from = t->c->home};
    int error = list_moved(t, runs, count, &record);
    if (error == 0)
        error = log_void_found(t);
    if (error == 0)
        error = log_plan(t, &record);
    if (error == 0) {
        error = log_write(t, &record, base);
        *recorded = error == 0 || log_erase_stale(t) != 0;
    }
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error != 0)
        return error;
    log_install(t);
    t->epoch++;
    /* No record says that this one is durable, so the base does. */
    error = log_publish_state(t, t->epoch - 1, t->c->mark_open);
    return error == 0 ? medium_fence(&t->c->medium) : error;
}
