/*
 * Commit of the log engine. Each step that can fail comes before the first change. Small commits take these
 * steps in small.c.
 *
 *   1  Find what has changed: lines of data, and lines of metadata.
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
    const uint32_t *map = log_engine_of(t)->map;
    uint64_t end = clear->offset + clear->bytes;
    for (uint64_t at = clear->offset; at < end; at += PM_LINE)
        if (map[at / PM_LINE] != 0 && is_clear(t, at, min_u64(at + PM_LINE, end)))
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

/* ---- the steps ------------------------------------------------------------------------------- */

/* Past the cache: nobody reads home before the line changes again, or the cleaner comes. */
static void bring_home(struct txn *t, uint64_t run)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    for (uint64_t line = run_line(run), end = line + run_count(run); line < end; line++)
        stream_line(t->c->home + line * PM_LINE, line_in_home_form(t, line, image));
}

static void finish(struct txn *t, const struct commit_words *w, uint64_t stored_count)
{
    const struct changes *ch = &t->view.changes;
    log_install(t);
    journal_apply(t->c, w->clears, w->counts.clears, w->words, w->counts.words);
    for (uint64_t i = 0; i < stored_count; i++)
        bring_home(t, ch->runs[i]);
    t->lines_logged += ch->lines;
    log_end_filled(t);
    log_map_planned(t);
    view_end(t, w);
    log_keep_bound(t);
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

/* The program goes on with what is left of the cleaner's chunk. */
static void swap_streams(struct log_engine *k)
{
    uint32_t cleaner = k->open[LOG_CLEANER];
    k->open[LOG_CLEANER] = k->open[LOG_PROGRAM];
    k->open[LOG_PROGRAM] = cleaner;
}

/* Plan the record. If the disk is full, make room first. */
static int plan(struct txn *t, struct record_runs *runs)
{
    int error = log_plan(t, runs);
    while (log_gains_room(t, error))
        error = log_plan(t, runs);
    if (log_lacks_room(error)) {
        swap_streams(log_engine_of(t));
        error = log_plan(t, runs);
    }
    return error;
}

/* Out of line: a small commit then saves no registers for it. */
__attribute__((noinline)) static int commit_any(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    const struct changes *ch = &t->view.changes;
    (void)log_unfill_freed(t); /* home is right even if it fails, and the lines are nobody's */
    view_collect(t);
    struct commit_words w = view_words(t);
    uint64_t stored_count = ch->run_count;
    log_add_filled(t);
    uint64_t data_count = ch->run_count;
    collect_metadata(t, &w);
    if (ch->lines == 0) {
        log_end_filled(t);
        view_end_unchanged(t);
        log_keep_bound(t);
        return 0;
    }
    struct record_runs runs = {.runs = ch->runs,
                               .count = ch->run_count,
                               .data_count = data_count,
                               .stored_count = stored_count,
                               .lines = ch->lines,
                               .metadata_from = t->c->shadow};
    int error = log_void_chunks(t);
    if (error == 0) {
        log_clean(t, ch->lines);
        error = log_split(t, &runs, ch->changed);
    }
    if (error == 0)
        error = plan(t, &runs);
    if (error == 0)
        error = log_write(t, &runs, t->c->pointers_base);
    if (error != 0)
        return cannot_write(t, ch->lines, error);
    view_leave(t);
    rounds_note(t, k->fenced); /* L1 */
    finish(t, &w, stored_count);
    return 0;
}

int log_commit(struct txn *t)
{
    int error;
    if (!log_commit_small(t, &error))
        return commit_any(t);
    return error == 0 ? 0 : cannot_write(t, t->view.changes.lines, error);
}

int log_rebase(struct txn *t, const uint64_t *runs, uint64_t count, uint64_t base, bool *recorded)
{
    uint64_t root = redo_run(t->root.offset / PM_LINE, 1); /* a record has at least one line */
    struct record_runs record = {.runs = count > 0 ? runs : &root,
                                 .count = max_u64(count, 1),
                                 .metadata_from = t->c->home};
    for (uint64_t i = 0; i < record.count; i++)
        record.lines += run_count(record.runs[i]);
    int error = log_void_found(t);
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
