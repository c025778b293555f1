/*
 * Journaled words: the root, the segment table, the bitmaps, the pointer map, the table of modules.
 * Allocation never logs them before it changes them (METRADB). The open transaction works on a volatile
 * *shadow*. Commit writes the words that differ from home into its record. Only when the record is durable
 * are the words applied to home. So home's words are always those of the last commit, and rollback is a
 * copy the other way.
 *
 * Words come in *regions*, each a contiguous array. A region remembers the range of its words that the
 * transaction may have changed. While these words are few it also remembers each, for they may be far
 * apart. The journal chains the regions with changes.
 *
 * Invariants
 *  J1  Outside [low, high) of its dirty range a region's shadow equals home.
 *  J2  While a region has not `many`, the words whose shadow differs from home are among its `few`,
 *      which are in ascending order.
 *  J3  A region is in the chain if and only if its dirty range is not empty or `clear` is set.
 *  J4  Home's words change only in journal_apply(), for segments free at the last commit in
 *      journal_clear(), and for log segments (segments.c).
 */
#ifndef PM_WORDS_JOURNAL_H
#define PM_WORDS_JOURNAL_H

#include "container/container.h"

/* A region with more changed words remembers only their range. */
#define JOURNAL_FEW 4

struct journal_region {
    uint64_t offset; /* of the region's first word in the file */
    uint32_t words;
    uint32_t low, high;        /* dirty range, in words; empty: low == high */
    uint32_t few[JOURNAL_FEW]; /* words that may have changed */
    uint8_t few_count;
    bool many;     /* more than JOURNAL_FEW words may have changed: all in the range */
    bool clear;    /* new in this transaction: home is zeroed before words are applied */
    bool obsolete; /* the commit gives its segment back: nothing to record */
    struct journal_region *next;
};

struct journal {
    struct container *c;
    struct journal_region *dirty;
};

/* How many words of a region may have changed. journal_candidate() returns the n-th of them, in ascending
 * order. */
static inline uint32_t journal_candidates(const struct journal_region *r)
{
    return r->many ? r->high - r->low : r->few_count;
}

static inline uint32_t journal_candidate(const struct journal_region *r, uint32_t n)
{
    return r->many ? r->low + n : r->few[n];
}

/* Numbers of changes, counted or written out for a record. */
struct journal_counts {
    uint64_t clears, words;
};

/* Set word `index` of a region in the shadow. The caller serialises per journal. A few ns. */
void journal_set(struct journal *journal, struct journal_region *region, uint32_t index,
                 uint64_t value);

/*
 * Begin a region on a segment that was free at the last commit, with all words zero. The old contents are
 * nobody's, so home is zeroed at once, and the record will repeat it.
 */
void journal_clear(struct journal *journal, struct journal_region *region);

struct journal_counts journal_count(const struct journal *journal);

/* Write the changes to arrays with room for all of them, and return how many there were. It applies
 * nothing yet. */
struct journal_counts journal_collect(const struct journal *journal, struct record_clear *clears,
                                      struct record_word *words);

/* Store changes to home. journal_write_back() queues their lines for write-back, before the next round
 * ends. */
void journal_apply(struct container *c, const struct record_clear *clears, uint64_t clear_count,
                   const struct record_word *words, uint64_t word_count);
void journal_write_back(struct container *c, const struct record_clear *clears,
                        uint64_t clear_count, const struct record_word *words, uint64_t word_count);

/* Drop regions that are both new and obsolete: their segments are free as they were. */
void journal_forget_new_obsolete(struct journal *journal);

/* Give back the memory of a clean region's shadow. The shadow then reads through to the file, and so to
 * home. If home is a copy, it does nothing. The region's words must have pages of their own. */
void journal_trim(struct journal *journal, const struct journal_region *region);

/* Mark all regions as clean. A commit has applied the changes, or it has collected them and applies them
 * before anybody else sees the journal. */
void journal_finish(struct journal *journal);

/* Make the shadow equal to home again. */
void journal_rollback(struct journal *journal);

#endif
