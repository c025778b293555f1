/*
 * Commit of the log engine. Each step that can fail comes before the first change.
 *
 *   1  Find what has changed: lines of data, and lines of metadata.
 *   2  Void chunks that nobody needs, and plan the record.
 *   3  Write the record.
 *   4  While it is on its way, clear the marks.
 *   5  Fence, on pmem. On a file rounds_wait() does so later, for several commits at once.
 *   6  Bring the map and home up to date. Close cold pages.
 */
#include "txn/log/log.h"

#include "base/error.h"
#include "txn/sums.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- metadata -------------------------------------------------------------------------------- */

static int add_line(struct log_engine *k, uint64_t line)
{
    uint64_t *last =
        k->metadata.count > 0 ? (uint64_t *)k->metadata.items + k->metadata.count - 1 : NULL;
    uint64_t next = last ? run_line(*last) + run_count(*last) : 0;
    if (last && line + 1 == next)
        return 0;
    k->metadata_lines++;
    if (last && line == next && run_count(*last) < RUN_LINES_MAX) {
        *last = redo_run(run_line(*last), run_count(*last) + 1);
        return 0;
    }
    uint64_t *run = vector_push(&k->metadata, sizeof *run);
    if (!run)
        return -ENOMEM;
    *run = redo_run(line, 1);
    return 0;
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
static int add_cleared(struct txn *t, const struct record_clear *clear)
{
    struct log_engine *k = log_engine_of(t);
    int error = 0;
    uint64_t end = clear->offset + clear->bytes;
    for (uint64_t at = clear->offset; at < end && error == 0; at += PM_LINE)
        if (k->map[at / PM_LINE] != 0 && is_clear(t, at, min_u64(at + PM_LINE, end)))
            error = add_line(k, at / PM_LINE);
    return error;
}

/* The lines of a commit's journaled words. */
static int collect_metadata(struct txn *t, const struct commit_words *w)
{
    struct log_engine *k = log_engine_of(t);
    int error = 0;
    k->metadata.count = k->metadata_lines = 0;
    for (uint64_t i = 0; i < w->counts.clears && error == 0; i++)
        error = add_cleared(t, &w->clears[i]);
    for (uint64_t i = 0; i < w->counts.words && error == 0; i++)
        error = add_line(k, w->words[i].offset / PM_LINE);
    return error;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void carry_home(struct txn *t, uint64_t run)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    for (uint64_t line = run_line(run), end = line + run_count(run); line < end; line++)
        memcpy(t->c->home + line * PM_LINE, line_in_home_form(t, line, image), PM_LINE);
}

static void finish(struct txn *t, const struct commit_words *w, const struct record_runs *runs)
{
    log_install(t);
    journal_apply(t->c, w->clears, w->counts.clears, w->words, w->counts.words);
    t->sums = w->sums;
    for (uint64_t i = 0; i < runs->data_count; i++)
        carry_home(t, runs->data[i]);
    t->lines_logged += t->view.changes.lines + log_engine_of(t)->metadata_lines;
    view_end(t, w);
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

int log_commit(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    const struct changes *ch = &t->view.changes;
    view_collect(t);
    struct commit_words w = view_words(t);
    int error = collect_metadata(t, &w);
    uint64_t lines = ch->lines + k->metadata_lines;
    if (error == 0 && lines == 0) {
        view_end_unchanged(t);
        return 0;
    }
    struct record_runs runs = {ch->runs, k->metadata.items, ch->run_count, k->metadata.count,
                               t->c->shadow};
    w.sums = sums_after(t, w.words, w.counts.words);
    if (error == 0)
        error = log_void_chunks(t);
    if (error == 0)
        error = log_plan(t, &runs);
    if (error == 0)
        error = log_write(t, &runs, w.sums, t->c->pointers_base);
    if (error != 0)
        return cannot_write(t, lines, error);
    view_leave(t);
    rounds_note(t, k->fenced); /* L1 */
    finish(t, &w, &runs);
    return 0;
}

int log_rebase(struct txn *t, const uint64_t *runs, uint64_t count, uint64_t base)
{
    uint64_t root = redo_run(t->root.offset / PM_LINE, 1); /* a record has at least one line */
    struct record_runs record = {NULL, count > 0 ? runs : &root, 0, max_u64(count, 1), t->c->home};
    int error = log_plan(t, &record);
    if (error == 0)
        error = log_write(t, &record, t->sums, base);
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
