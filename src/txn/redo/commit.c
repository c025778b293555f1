/*
 * Commit of the redo engine. Each step that can fail comes before the first change. The exception is
 * copying, which may meet an I/O error on a file: then nothing refers to the copied data.
 *
 *   1  Find what has changed.
 *   2  Make room in the log.
 *   3  Write fresh lines straight home, and the record to the log.
 *   4  While the record is on its way, clear the marks, and note which words home will get.
 *   5  Fence, on pmem. On a file rounds_wait() does so later, for several commits at once.
 *   6  Bring the words and the lines home, the lines past the cache. Close cold pages.
 *   7  The next commit writes the words back, and its fence waits for them.
 *
 * If there are too many words for step 7, the commit writes them back at once. They are not durable any
 * sooner. The next locked instruction or fence waits for them, and words that the next commit compares
 * leave the cache.
 */
#include "txn/redo/redo.h"

#include "base/error.h"
#include "txn/copy.h"
#include "txn/sums.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

static int write_fresh(struct txn *t)
{
    const struct changes *ch = &t->view.changes;
    int error = 0;
    for (uint64_t i = 0; i < ch->fresh_count && error == 0; i++) {
        uint64_t offset = ch->fresh[i].offset, bytes = ch->fresh[i].bytes;
        error = medium_copy(&t->c->medium, t->c->home + offset, t->c->base + offset, bytes);
        t->bytes_fresh += bytes;
    }
    return error;
}

static uint64_t stream_bytes(const struct txn *t, const struct commit_words *w)
{
    const struct changes *ch = &t->view.changes;
    return redo_stream_bytes(w->counts.clears, w->counts.words, ch->fresh_count, ch->run_count,
                             ch->lines);
}

/* Skip empty tables: redo_log_put() accepts no empty piece, and many tables are empty. */
static inline void log_table(struct txn *t, const void *table, uint64_t bytes)
{
    if (bytes > 0)
        redo_log_put(t, table, bytes);
}

/* Reads lines of the view, like write_fresh() and carry_home(). Why this is no race: see tests/tsan.supp. */
static inline void log_lines(struct txn *t, uint64_t run)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    for (uint64_t line = run_line(run), end = line + run_count(run); line < end; line++)
        redo_log_put(t, line_in_home_form(t, line, image), PM_LINE);
}

static inline void carry_home(struct txn *t, uint64_t run)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    for (uint64_t line = run_line(run), end = line + run_count(run); line < end; line++)
        medium_carry_line(&t->c->medium, t->c->home + line * PM_LINE,
                          line_in_home_form(t, line, image));
}

static int write_record(struct txn *t, const struct commit_words *w)
{
    const struct changes *ch = &t->view.changes;
    struct redo_part head = {
        .epoch = t->epoch,
        .fenced = atomic_load(&t->rounds.durable),
        .total = stream_bytes(t, w),
        .previous = sums_word(w->sums),
        .clears = (uint32_t)w->counts.clears,
        .words = (uint32_t)w->counts.words,
        .fresh = (uint32_t)ch->fresh_count,
        .runs = (uint32_t)ch->run_count,
    };
    redo_log_begin(t, &head);
    log_table(t, w->clears, w->counts.clears * sizeof *w->clears);
    log_table(t, w->words, w->counts.words * sizeof *w->words);
    log_table(t, ch->fresh, ch->fresh_count * sizeof *ch->fresh);
    log_table(t, ch->runs, ch->run_count * sizeof *ch->runs);
    for (uint64_t i = 0; i < ch->run_count; i++)
        log_lines(t, ch->runs[i]);
    return redo_log_end(t);
}

void redo_write_back(struct txn *t)
{
    struct redo *r = redo_of(t);
    for (uint32_t i = 0; i < r->unwritten_count; i++)
        medium_write_back(&t->c->medium, t->c->home + r->unwritten[i].offset,
                          r->unwritten[i].bytes);
    r->unwritten_count = 0;
}

static inline void note(struct redo *r, uint64_t offset, uint64_t bytes)
{
    assert(r->unwritten_count < UNWRITTEN_MAX);
    r->unwritten[r->unwritten_count++] = (struct range){offset, bytes};
}

/* List the words that journal_write_back() would write back now. The next commit writes them back. */
static inline void note_unwritten(struct redo *r, const struct commit_words *w)
{
    for (uint64_t i = 0; i < w->counts.clears; i++)
        note(r, w->clears[i].offset, w->clears[i].bytes);
    for (uint64_t i = 0; i < w->counts.words; i++) /* one word stands for all of its line */
        if (i == 0 || w->words[i].offset / PM_LINE != w->words[i - 1].offset / PM_LINE)
            note(r, w->words[i].offset, sizeof w->words[i].value);
}

/* True if the next round can write back the words of this commit. A file queues its pages at once. */
static bool written_back_later(const struct txn *t, const struct commit_words *w)
{
    return !redo_on_file(t) && w->counts.clears + w->counts.words <= UNWRITTEN_MAX;
}

/* Bring the record's words and lines home. The record is written; on pmem it is also durable. */
static void apply(struct txn *t, const struct commit_words *w)
{
    const struct changes *ch = &t->view.changes;
    journal_apply(t->c, w->clears, w->counts.clears, w->words, w->counts.words);
    t->sums = w->sums;
    for (uint64_t i = 0; i < ch->run_count; i++)
        carry_home(t, ch->runs[i]);
    t->lines_logged += ch->lines;
    if (!written_back_later(t, w))
        journal_write_back(t->c, w->clears, w->counts.clears, w->words, w->counts.words);
}

static void note_for_copy(struct txn *t, const struct commit_words *w)
{
    const struct changes *ch = &t->view.changes;
    copy_note_words(t, w->clears, w->counts.clears, w->words, w->counts.words);
    for (uint64_t i = 0; i < ch->run_count; i++)
        copy_note(t, run_line(ch->runs[i]) * PM_LINE, run_count(ch->runs[i]) * PM_LINE);
    for (uint64_t i = 0; i < ch->fresh_count; i++)
        copy_note(t, ch->fresh[i].offset, ch->fresh[i].bytes);
}

static void finish(struct txn *t, const struct commit_words *w)
{
    apply(t, w);
    if (t->copy)
        note_for_copy(t, w);
    if (t->view.changes.fresh_count > 0)
        redo_of(t)->newest_fresh = t->epoch;
    view_end(t, w);
}

static int cannot_write(struct txn *t, uint64_t bytes, int error)
{
    if (txn_check_medium(t) != 0)
        return -1;
    return container_fail_at(
        t->c, container_bytes(t->c), -error,
        "cannot write a commit record of %" PRIu64 " bytes (commit again, or roll back)", bytes);
}

int redo_commit(struct txn *t)
{
    struct redo *r = redo_of(t);
    const struct changes *ch = &t->view.changes;
    view_collect(t);
    struct commit_words w = view_words(t);
    uint64_t total = stream_bytes(t, &w);
    if (total == 0) {
        view_end_unchanged(t);
        return 0;
    }

    /* Giving up log segments adds a word for each; reserve room for these words too. */
    uint64_t most = total + log_segments(&t->log) * sizeof(struct record_word);
    int error = redo_log_reserve(t, most);
    if (error == 0) /* R9: fresh ranges may be live in the last durable state. R11 */
        error = rounds_sync(t, ch->fresh_count > 0 ? t->epoch - 1 : r->newest_fresh);
    if (error == 0 && t->epoch > ROUND_MAX) /* R13 */
        error = rounds_sync(t, t->epoch - ROUND_MAX);
    if (error != 0)
        return cannot_write(t, total, error);
    if (redo_log_shrink(t, most) > 0)
        w = view_words(t);
    w.sums = sums_after(t, w.words, w.counts.words);
    redo_write_back(t); /* after this point a read of home's lines would wait for the medium */
    error = write_fresh(t);
    if (error == 0)
        error = write_record(t, &w);
    if (error != 0) {
        redo_log_unshrink(t);
        return cannot_write(t, total, error);
    }
    if (written_back_later(t, &w))
        note_unwritten(r, &w);
    view_leave(t);
    rounds_note(t, r->log.head.fenced);
    finish(t, &w);
    if (redo_on_file(t))
        (void)redo_log_trickle(t); /* the next sync or reservation reports an error */
    return 0;
}
