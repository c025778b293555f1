/* The steps of a commit that all engines with a private view share. The first comes before the record is
 * written, the second while it is on its way, and the last when it counts. */
#include "txn/txn.h"

#include <sys/mman.h>

/* Bytes of a commit's tables that stay in memory between commits. */
#define KEPT (64 * PM_PAGE)

struct commit_words view_words(struct txn *t)
{
    struct commit_words w = {.clears = t->view.clears, .words = (struct record_word *)t->record};
    w.counts = journal_collect(&t->journal, w.clears, w.words);
    return w;
}

void view_end_unchanged(struct txn *t)
{
    tracker_clear(&t->tracker, &t->pages);
    view_cool_pages(t);
    view_evict(t);
}

/* Give back memory of a table that a large transaction needed. */
static void trim(const void *table, uint64_t bytes)
{
    if (bytes > KEPT)
        madvise((char *)(uintptr_t)table + KEPT, align_up(bytes - KEPT, PM_PAGE), MADV_DONTNEED);
}

void view_leave(struct txn *t)
{
    uint64_t marked = t->tracker.count;
    journal_finish(&t->journal);
    tracker_clear(&t->tracker, &t->pages);
    trim(t->tracker.marked, marked * sizeof *t->tracker.marked);
}

void view_end(struct txn *t, const struct commit_words *w)
{
    const struct changes *ch = &t->view.changes;
    segments_close_freed(t, w->words, w->counts.words);
    if (t->translation)
        translation_note(t->translation, w->words, w->counts.words);
    view_cool_pages(t);
    trim(ch->runs, ch->run_count * sizeof *ch->runs);
    trim(ch->changed, ch->lines);
    trim(ch->fresh, ch->fresh_count * sizeof *ch->fresh);
    trim(w->clears, w->counts.clears * sizeof *w->clears);
    trim(w->words, w->counts.words * sizeof *w->words);
    count(&t->epoch);
    count(&t->commits);
    if (t->c->medium.queue)
        queue_set_epoch(&t->c->medium, t->epoch);
    view_merge_maps(t);
    view_evict(t);
}
