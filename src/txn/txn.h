/*
 * Transactions: what the allocator and the api see of them. One per container, implicit, numbered
 * by its epoch. The undo engine of DESIGN: the view is home, a page's contents at the start of the
 * epoch are in the log before the page can be stored to, and commit is one round.
 *
 *                  store to a closed page: image, fence, open        +--------------------+
 *                              +----+                                |                    |
 *                              v    |                                v                    |
 *   txn_open --> recovery --> EPOCH e OPEN -- txn_commit: one round, record e --> words applied,
 *                  |           ^    |                                            cold pages closed,
 *                  |           |    | txn_rollback: images back,                 e becomes e + 1
 *                  |           +----+ words back; same epoch, pages stay open
 *                  |
 *                  +-- torn record or no record: images back; base epoch; then EPOCH base + 1
 *
 * The rules (numbered in docs/internals.md, cited below as "rule n") and where they are kept:
 *   1  every line of every opened page is written back, every such live page listed     commit.c
 *   2  halves of the log and record slots alternate by epoch                            log.h
 *   3  fresh is judged by the committed bitmap; when a record holds                     recovery.c
 *   4  which record recovery takes, what it copies back, what it applies                recovery.c
 *   5  recovery makes durable what it relies on before it changes anything              recovery.c
 *   6  the base epoch, by a round of its own, ends a recovery                           recovery.c
 *   7  rollback stays in its epoch and keeps pages and images                           undo.c
 *   8  a hot page is not written back home: its image proves it                         commit.c
 *
 * Locking. The *page lock* guards everything here but the journal; the handler takes it. The
 * journal, notes, commit and rollback are serialised by the caller (the allocator's mutex).
 */
#ifndef PM_TXN_H
#define PM_TXN_H

#include "base/lock.h"
#include "container/container.h"
#include "txn/journal.h"
#include "txn/log.h"
#include "txn/pages.h"

/* A page whose liveness changes with this commit. */
struct page_note {
    uint32_t page;
    bool live; /* afterwards */
};

struct recovery_report {
    bool recovered; /* there was something to do */
    uint64_t pages; /* images copied back */
    uint64_t ns;
};

struct txn {
    struct container *c;
    struct lock lock; /* the page lock */
    uint64_t epoch;   /* of the open transaction */
    bool reserved;    /* until commit, log no page that nobody stored to: txn_reserve() counted */
    bool concurrent;  /* threads may store during commit */
    struct journal journal;
    struct journal_region table; /* the segment table */
    struct journal_region root;  /* root_offset, root_size */
    struct log log;
    struct pages pages;
    uint32_t free_hint;      /* no segment below it is free */
    struct page_note *notes; /* room for every page */
    uint64_t note_count;
    char *record; /* where commit builds its record */
    struct recovery_report recovery;
    uint64_t commits, faults, pages_logged, pages_ahead;
};

/*
 * Recover the container that container_open() opened, complete its mappings, begin an epoch. -1
 * with a message.
 */
int txn_open(struct txn *t, struct container *c, bool concurrent);

/* Write back what a hot page's image proved, raise the base epoch: nothing is left to recover. The
 * open transaction must have been rolled back. */
void txn_close(struct txn *t);

/* Release the tables only, for a read-only container or a failed open. */
void txn_unload(struct txn *t);

/*
 * What the allocator tells before txn_commit(): after it `page` holds a live object, or holds none
 * any more. At most once a page; only for pages where that is news (txn_page_is_fresh()).
 */
void txn_note(struct txn *t, uint32_t page, bool live);

static inline bool txn_page_is_fresh(const struct txn *t, uint32_t page)
{
    return t->pages.flags[page] & PAGE_FRESH;
}

/* Mark pages that the committed bitmap shows to hold nothing; they will open without an image. */
void txn_set_fresh(struct txn *t, uint32_t first, uint32_t count);

/* Commit. 0, or -1 with a message and nothing changed but the notes, which are consumed. */
int txn_commit(struct txn *t);

int txn_rollback(struct txn *t);

/* Log and open [first, first + count) in one round. -errno: nothing opened. */
int txn_dirty(struct txn *t, uint32_t first, uint32_t count);

/*
 * Grow the log so that `pages` more pages can be logged, and a commit can list them and
 * `extra_pages` others, with `extra_words` journaled words. -errno
 */
int txn_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words);

/*
 * Serve a store to `address` in the container. True: the store may be tried again. False: no page
 * that may be stored to. Ends the process when the page cannot be logged. [handler]
 */
bool txn_fault(struct txn *t, const void *address);

/* The transaction layer's part of pm_check(): table words, base epoch, page states. */
int txn_check(struct txn *t);

/* ---- segments ------------------------------------------------------------------------------ */

/*
 * Take `count` adjacent segments for the open transaction: the first gets `word`, others
 * SEGMENT_MORE. Only such as were free at the last commit and are free now; else the file grows.
 * Their pages are fresh, and open but for the first `header_bytes`. Returns the first, or -errno.
 */
int64_t segments_take(struct txn *t, uint32_t count, uint64_t word, uint64_t header_bytes);

/* Free segments [first, first + count) with the next commit. */
void segments_release(struct txn *t, uint32_t first, uint32_t count);

/* Give `half` of the log room for `slots`. Under the page lock. [handler] -errno */
int segments_grow_log(struct txn *t, unsigned half, uint64_t slots);

/*
 * Let a half of the log whose contents are void shrink to what recent epochs needed of it, but keep
 * `slots`. The segments are free after the commit that is being prepared, which cannot fail after.
 */
void segments_shrink_log(struct txn *t, unsigned half, uint64_t slots);

/* Whether stores to this page are the application's to make: part of a slab's or large object's
 * data. [handler] */
bool segments_page_is_data(const struct txn *t, uint32_t page);

static inline uint32_t pages_per_segment(const struct container *c)
{
    return (uint32_t)(c->segment_size >> PM_PAGE_SHIFT);
}

#endif
