/*
 * A copy of the last commit, made while commits go on. pm_copy() is the reader's way in.
 *
 * Home has the last commit, but for three things: a commit that runs, stores of the open transaction
 * under undo, and the log. So
 *
 *   1  From now on commits note which pages of home they change.
 *
 *   2  All segments with data or metadata are copied, without a lock. Some pages may be torn.
 *
 *   3  Pages that were changed meanwhile are copied again, and again, until they are few.
 *
 *   4  The pause, under the page lock: the pages that are left are copied to memory, and those of the
 *      open transaction from their pre-images.
 *
 *   5  These pages are written. The state page says: no log, closed.
 *
 * Why it is one commit's state:
 *
 *   C1  A commit notes under the page lock what it changes in home: the lines and words that it
 *       carries there; under undo the pages that its record lists (U1). All others hold nothing.
 *   C2  A segment that was free, or log, when step 2 passed it is noted whole when it gets an owner.
 *       What the log claims nobody notes: in the copy the segment is log or free, and holds nothing.
 *   C3  A page with uncommitted stores is one that has a pre-image (undo), or holds nothing committed.
 *   C4  Each page is read after the last commit that changed it: in step 4 if not before.
 */
#ifndef PM_TXN_COPY_H
#define PM_TXN_COPY_H

#include "txn/txn.h"

/* Pages, each once, in the order of their first change. */
struct page_set {
    uint64_t *bits;  /* one a page of the container's maximal size */
    uint32_t *pages; /* room for all */
    uint32_t count;
};

/* What a commit needs to know of a copy that is being made. Guarded by the page lock. */
struct copy {
    struct page_set *changed; /* pages of home, since they were last collected */
};

/* Told how many of `total` bytes have been copied. Not 0: stop. */
typedef int copy_progress(void *context, uint64_t done, uint64_t total);

/* Whether a copy is being made. */
bool txn_is_copied(struct txn *t);

/* -1 with EBUSY: a copy is being made, and what is asked for would disturb it. */
int txn_refuse_beside_copy(const struct txn *t);

/* Copy the last commit to a new file at `path`; any thread. -1 with a message, and there is no file. */
int txn_copy(struct txn *t, const char *path, copy_progress *progress, void *context);

/* Home has changed there. */
void copy_note(struct txn *t, uint64_t offset, uint64_t bytes);

/* A record's words and clears have been applied. */
void copy_note_words(struct txn *t, const struct record_clear *clears, uint64_t clear_count,
                     const struct record_word *words, uint64_t word_count);

#endif
