/*
 * Rollback, and room for a transaction yet to come. Both count or visit all that the open transaction stored
 * to: listed pages as a whole, and marked lines. Rollback copies home's contents back to the view.
 */
#include "txn/redo/redo.h"

#include "base/error.h"

/* The most bytes of a record that a page can take. In the worst case all lines changed, and no logged
 * lines are adjacent. Lines that hold nothing committed go straight home, and the record has at most one
 * range for every second line. */
static uint64_t most_bytes(struct txn *t, uint32_t page)
{
    const uint64_t logged = sizeof(uint64_t) + PM_LINE;
    uint64_t before = t->upcalls.page_liveness(t->upcalls.context, page).before;
    if (t->translation)
        return PM_PAGE_LINES * logged;
    if (redo_on_file(t))
        return before ? PM_PAGE_LINES * logged
                      : PM_PAGE_LINES / 2 * logged; /* if dense, the page is fresh as a whole */
    uint64_t old = (uint64_t)__builtin_popcountll(before);
    return old * logged +
           min_u64(PM_PAGE_LINES - old, PM_PAGE_LINES / 2) * sizeof(struct redo_fresh);
}

/* Words of the pointer map that cover a page. */
#define MAP_WORDS_OF_PAGE (PM_PAGE / MAP_WORD_BYTES + 2)

/* Reserve log for everything the transaction stored to so far, for `pages` more pages, and for their
 * journaled words. */
int redo_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words)
{
    (void)extra_pages; /* these pages are marked or listed, and counted as such */
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    struct journal_counts counts = journal_count(&t->journal);
    uint64_t lines = t->tracker.count + pages * PM_PAGE_LINES, listed = 0;
    for (uint32_t i = 0; i < t->pages.count; i++)
        listed += most_bytes(t, t->pages.opened[i].page);
    uint64_t words = counts.words + extra_words + log_segments(&t->log);
    if (t->tracker.kinds) /* words of the pointer map: one a line, or a few a page */
        words += t->tracker.count + (pages + t->pages.count) * MAP_WORDS_OF_PAGE;
    int error =
        redo_log_reserve(t, listed + redo_stream_bytes(counts.clears, words, 0, lines, lines));
    lock_release_masked(&t->lock, &saved);
    return error;
}

/* Call `visit` for everything that the transaction stored to, as whole pages or lines. */
static int for_each_range(struct txn *t,
                          int (*visit)(struct txn *t, uint64_t offset, uint64_t bytes))
{
    const struct tracker *k = &t->tracker;
    int error = 0;
    for (uint32_t i = 0; i < t->pages.count && error == 0; i++)
        error = visit(t, (uint64_t)t->pages.opened[i].page << PM_PAGE_SHIFT, PM_PAGE);
    for (uint64_t i = 0, n = k->count; i < n && error == 0; i++)
        if (line_is_marked(t->c, k->marked[i]))
            error = visit(t, k->marked[i] * PM_LINE, PM_LINE);
    return error;
}

/* Open all pages first, which can fail. Then restore them, which cannot fail, unless the pages need more
 * maps than the kernel allows. In this case some pages have been closed again, restoring stops, and the
 * next rollback restores the rest. */
int redo_rollback(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int error = for_each_range(t, redo_open_range);
    if (error == 0)
        error = for_each_range(t, redo_restore);
    if (error == 0) {
        tracker_clear(&t->tracker, &t->pages);
        journal_rollback(&t->journal);
        t->free_hint = 0;
        pages_sort(&t->pages);
        for (uint32_t i = 0; i < t->pages.count; i++)
            t->pages.opened[i].changed = false; /* nothing has changed */
        redo_cool_pages(t);
        redo_evict(t);
    }
    lock_release_masked(&t->lock, &saved);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot open a page to restore it", t->c->path);
    return 0;
}
