/*
 * A copy of the last commit, made while commits go on. The public function is pm_copy().
 *
 * Home has the last commit, with three exceptions: a commit that is running, stores of the open
 * transaction under undo, and the log. So the copy is made in five steps:
 *
 *   1  From now on commits note which pages of home they change.
 *
 *   2  All segments with data or metadata, or chunks that are not free, are copied, without a lock. Some
 *      pages may be torn.
 *
 *   3  Pages that were changed meanwhile are copied again, until few are left, or seven times.
 *
 *   4  The pause, under the page lock: the pages that are left are copied to memory. Pages of the open
 *      transaction are copied from their images.
 *
 *   5  These pages are written. The state page says: no log, closed.
 *
 * Why the copy is one commit's state:
 *
 *   C1  A commit notes under the page lock every page that it changes in home. Under redo these have the
 *       lines and words that it carries home. Under undo they are the pages that its record lists (U1).
 *       All other pages hold nothing.
 *   C2  A segment may be free, or log, when step 2 passes it. When it gets an owner, it is noted whole.
 *       If the log claims a segment, nobody notes it: in the copy it is log or free, and holds nothing.
 *   C3  A page with uncommitted stores has an image (undo), or holds nothing committed.
 *   C4  Each page is read after the last commit that changed it: in step 4, if not before.
 *   C5  Under the log engine a chunk that is free when step 1 begins is not copied, for the copy has a void
 *       chunk there. Who takes it stores to it by log_store(), which notes the pages (C1).
 */
#ifndef PM_TXN_COPY_H
#define PM_TXN_COPY_H

#include "txn/txn.h"

/* A set of pages, in the order of their first change. */
struct page_set {
    uint64_t *bits;  /* one bit for each page that the file may ever have */
    uint32_t *pages; /* room for all pages */
    uint32_t count;
};

/* The part of a copy job that a commit needs to know. Guarded by the page lock. */
struct copy {
    struct page_set *changed; /* pages of the file changed since a pass last took the set */
};

/* Called with the bytes copied so far, `done` of `total`. If it returns another value than 0, the copy
 * stops. */
typedef int copy_progress(void *context, uint64_t done, uint64_t total);

/* True while a copy is being made. */
bool txn_is_copied(struct txn *t);

/* Fail with EBUSY if a copy is being made that the caller's operation would disturb. 0, or -1. */
int txn_refuse_beside_copy(const struct txn *t);

/* Copy the last commit to a new file at `path`. Any thread may call it. -1 with a message, and then there
 * is no file. */
int txn_copy(struct txn *t, const char *path, copy_progress *progress, void *context);

/* Note that a commit changes this range of the file. */
void copy_note(struct txn *t, uint64_t offset, uint64_t bytes);

/* Note that a commit has applied a record's words and clears to home. */
void copy_note_words(struct txn *t, const struct record_clear *clears, uint64_t clear_count,
                     const struct record_word *words, uint64_t word_count);

#endif
