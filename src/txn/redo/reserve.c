/* Room for a transaction yet to come: the log grows by the most that its record can take. */
#include "txn/redo/redo.h"

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
    uint64_t lines = t->tracker.count + pages * PM_PAGE_LINES, listed = 0,
             fresh = t->tracker.object_lines; /* which go straight home */
    for (uint32_t i = 0; i < t->pages.count; i++)
        listed += most_bytes(t, t->pages.opened[i].page);
    uint64_t words = counts.words + extra_words + log_segments(&t->log);
    if (t->tracker.kinds) /* words of the pointer map: one a line, or a few a page */
        words += lines + fresh + t->pages.count * MAP_WORDS_OF_PAGE;
    int error =
        redo_log_reserve(t, listed + redo_stream_bytes(counts.clears, words, fresh, lines, lines));
    lock_release_masked(&t->lock, &saved);
    return error;
}
