/*
 * The private view, of engines that do not work in place. The program stores to private copies of pages, and
 * home keeps the last commit. Here pages get their copies and lose them, commit finds what has changed, and
 * rollback brings home's contents back.
 *
 * Invariants
 *  I1  Outside marked lines and LISTED pages the view equals home. (Under `faults` free space that a
 *      transaction stored to may differ: a commit does not look at lines without an object.) In a
 *      translated container this holds for TRANSLATED pages, in the sense of translation.h.
 *  I2  A page of the view that is not PRIVATE is read through to the file, and equals home. In a translated
 *      container the page may be memory of the view instead. Under the log engine it is read through to
 *      home.
 */
#ifndef PM_TXN_VIEW_VIEW_H
#define PM_TXN_VIEW_VIEW_H

#include "container/sums.h"
#include "words/journal.h"

#include <stdint.h>

struct txn;

/* What a commit has found. The tables have room for every line of the container. */
struct changes {
    uint64_t *runs; /* redo_run() values: runs of lines to log */
    uint64_t run_count;
    uint64_t lines;           /* lines in all runs */
    uint8_t *changed; /* for each: its words that differ, a bit each; LINE_WORDS_ALL if unknown */
    struct redo_fresh *fresh; /* runs of lines to write straight home */
    uint64_t fresh_count;
};

/* The journaled words that a commit has found. */
struct commit_words {
    struct record_clear *clears;
    struct record_word *words; /* in the transaction's buffer */
    struct journal_counts counts;
    struct sums sums; /* after this commit; the engine fills it in */
};

struct view {
    struct changes changes;
    struct record_clear *clears; /* a commit's; room for one a segment */
    bool logs_fresh;      /* lines without an object at the last commit are logged too */
    bool home_is_log;     /* home has what the log says, even where no object is */
    uint64_t private_max; /* pages that may have a private copy */
    uint32_t hand;        /* hand of the clock that evicts private copies */
    uint32_t opens;       /* runs of pages opened since the maps were last merged */
    uint32_t run;         /* pages that one mark opens at least */
};

/* Make the tables. `private_max` is in bytes. */
void view_load(struct txn *t, uint64_t private_max);

/* ---- pages.c --------------------------------------------------------------------------------- */

/* open_page(), open_marked(), dirty() of struct engine. */
int view_open_page(struct txn *t, uint32_t page);
int view_open_marked(struct txn *t, uint32_t page);
int view_dirty(struct txn *t, uint64_t offset, uint64_t bytes);

/* Open a range of the view, so that view_restore() can write to it. -errno */
int view_open_range(struct txn *t, uint64_t offset, uint64_t bytes);

/* Copy home's contents to a range of the view. Opens closed pages. -errno */
int view_restore(struct txn *t, uint64_t offset, uint64_t bytes);

/* Pages of segments taken for data: make their view equal to home. Page lock. -errno */
int view_adopt(struct txn *t, uint32_t first, uint32_t count, uint32_t header);

/* Close listed pages, except hot pages, which stay listed, and pages whose stores marks tell of. If the
 * kernel refuses to close a page, the page stays listed too, so that no store to it is missed. The list
 * must be sorted, and its entries must say what has changed. Nobody has stored since they say so: with
 * concurrent stores the pages are closed already. */
void view_cool_pages(struct txn *t);

/* If marks have opened too many runs of pages for the kernel's maps, close them all. The view must have
 * no uncommitted changes. Page lock. */
void view_merge_maps(struct txn *t);

/* Give private copies back until `private_max` holds. The view must have no uncommitted changes. Page
 * lock. */
void view_evict(struct txn *t);

/* ---- changes.c ------------------------------------------------------------------------------- */

/* Fill in `changes`. The caller holds the page lock and the allocator's lock. */
void view_collect(struct txn *t);

/* Add a line to the runs to log. It joins the last run, unless that is before run `first`. Inline, because a
 * commit of a few lines spends a noticeable part of its time here. */
static inline void changes_add(struct changes *ch, uint64_t first, uint64_t line, uint32_t changed)
{
    ch->changed[ch->lines++] = (uint8_t)changed;
    if (ch->run_count == first || !run_extend(&ch->runs[ch->run_count - 1], line))
        ch->runs[ch->run_count++] = redo_run(line, 1);
}

/* ---- commit.c -------------------------------------------------------------------------------- */

/* Collect the journaled words, but `sums`. */
struct commit_words view_words(struct txn *t);

/* End a commit that has found no change. */
void view_end_unchanged(struct txn *t);

/* The record is written and on its way to the medium. Meanwhile do the work that need not wait for it: clear
 * the marks. */
void view_leave(struct txn *t);

/* Home has what the record says. Begin the next epoch: close cold pages, and pages of freed segments, and
 * give memory back. */
void view_end(struct txn *t, const struct commit_words *w);

/* ---- rollback.c ------------------------------------------------------------------------------ */

/* rollback() of struct engine. */
int view_rollback(struct txn *t);

#endif
