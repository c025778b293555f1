/*
 * Journaled words: the root, the segment table, the bitmaps. Allocation never logs them before it
 * changes them (METRADB): the open transaction works on a volatile *shadow*, commit writes the
 * words that differ from home into its record, and only when the record is durable are they applied
 * to home. So home's words are always those of the last commit, and rollback is a copy the other
 * way.
 *
 * Words come in *regions*, each a contiguous array. A region remembers the range of its words that
 * the transaction may have changed, and which they are while they are few, for they may be far apart;
 * the journal chains the regions that have some.
 *
 * Invariants
 *  J1  Outside [low, high) of its dirty range a region's shadow equals home.
 *  J2  While a region has not `many`, the words whose shadow differs from home are among its `few`,
 *      which are in ascending order.
 *  J3  A region is in the chain if and only if its dirty range is not empty or `clear` is set.
 *  J4  Home's words change only in journal_apply(), for segments free at the last commit in
 *      journal_clear(), and for log segments (segments.c).
 */
#ifndef PM_TXN_JOURNAL_H
#define PM_TXN_JOURNAL_H

#include "container/container.h"

/* A small transaction changes no more words of a region. */
#define JOURNAL_FEW 4

struct journal_region {
    uint64_t offset; /* of the first word in the file */
    uint32_t words;
    uint32_t low, high;        /* dirty range, in words; empty: low == high */
    uint32_t few[JOURNAL_FEW]; /* words that may have changed */
    uint8_t few_count;
    bool many;     /* more than that may have: all in the range */
    bool clear;    /* new in this transaction: home is zeroed before words are applied */
    bool obsolete; /* its segment is given back with this commit: nothing to record */
    struct journal_region *next;
};

struct journal {
    struct container *c;
    struct journal_region *dirty;
};

/* How many words of a region may have changed, and which the n-th is: in ascending order. */
static inline uint32_t journal_candidates(const struct journal_region *r)
{
    return r->many ? r->high - r->low : r->few_count;
}

static inline uint32_t journal_candidate(const struct journal_region *r, uint32_t n)
{
    return r->many ? r->low + n : r->few[n];
}

/* Changes counted or written out for a record. */
struct journal_counts {
    uint64_t clears, words;
};

/* Set word `index` of a region in the shadow. The caller serialises per journal. A few ns. */
void journal_set(struct journal *journal, struct journal_region *region, uint32_t index,
                 uint64_t value);

/*
 * Begin a region on a segment that was free at the last commit, with all words zero. Whatever lies
 * there now is nobody's, so home is zeroed at once and the record will repeat it.
 */
void journal_clear(struct journal *journal, struct journal_region *region);

struct journal_counts journal_count(const struct journal *journal);

/* Write the changes to arrays with room for all of them, and return how many there were; nothing is
 * applied yet. */
struct journal_counts journal_collect(const struct journal *journal, struct record_clear *clears,
                                      struct record_word *words);

/* Store changes to home; and queue their lines for write-back, before the next round ends. */
void journal_apply(struct container *c, const struct record_clear *clears, uint64_t clear_count,
                   const struct record_word *words, uint64_t word_count);
void journal_write_back(struct container *c, const struct record_clear *clears,
                        uint64_t clear_count, const struct record_word *words, uint64_t word_count);

/* Drop regions that are both new and obsolete: their segments are free as they were. */
void journal_forget_new_obsolete(struct journal *journal);

/* Give back the memory of a clean region's shadow, which reads through to the file again, and so to
 * home; unless home is a copy. Its words must have pages of their own. */
void journal_trim(struct journal *journal, const struct journal_region *region);

/* All regions are clean from now on: a commit has applied the changes, or has collected them and will
 * before anybody else sees the journal. */
void journal_finish(struct journal *journal);

/* Take the shadow back to home. */
void journal_rollback(struct journal *journal);

#endif
