/*
 * Sums over all journaled words of the last commit. A lost sector reads as zeros, or as an older copy.
 * Each word of an older copy has a right seal, but the sum is wrong.
 *
 *   fixed   root, modules and segment table: pm_open() adds them up
 *   rest    bitmaps and pointer map, which grow with the container: pm_check() adds them up
 *
 * Each word contributes a hash of its payload and its offset. A word of zero contributes nothing, so
 * space that was never written needs no visit. A commit subtracts the old words and adds the new ones:
 * two multiplications a word. The log's words of the segment table do not count, because they change
 * without a commit.
 *
 * The sums of a commit are in its record; the sums at the base epoch are in the state page.
 */
#ifndef PM_CONTAINER_SUMS_H
#define PM_CONTAINER_SUMS_H

#include "container/format.h"

#define SUMS_FIXED_BITS 27
#define SUMS_REST_BITS  28
#define SUMS_SET        (UINT64_C(1) << (SEAL_BITS - 1)) /* so that sums are never zero */

static_assert(SUMS_FIXED_BITS + SUMS_REST_BITS + 1 == SEAL_BITS, "they fill a sealed word");

struct sums {
    uint32_t fixed, rest; /* modulo 2^32; a sums_word() keeps their lower bits */
};

/* Both as one sealed word. */
static inline uint64_t sums_word(struct sums s)
{
    uint64_t fixed = s.fixed & ((UINT64_C(1) << SUMS_FIXED_BITS) - 1);
    uint64_t rest = s.rest & ((UINT64_C(1) << SUMS_REST_BITS) - 1);
    return seal(SUMS_SET | rest << SUMS_FIXED_BITS | fixed);
}

static inline struct sums sums_of_word(uint64_t word)
{
    uint64_t payload = seal_payload(word) & ~SUMS_SET;
    return (struct sums){.fixed = (uint32_t)payload & ((UINT32_C(1) << SUMS_FIXED_BITS) - 1),
                         .rest = (uint32_t)(payload >> SUMS_FIXED_BITS)};
}

static inline bool sums_word_is_valid(uint64_t word)
{
    return seal_is_valid(word) && word & SUMS_SET;
}

/* The contribution of a word at `offset`. Each container has its own `seed`, so that their words differ. */
static inline uint32_t sums_term(uint64_t seed, uint64_t offset, uint64_t word)
{
    uint64_t key = (offset ^ seed) * UINT64_C(0x9E3779B97F4A7C15) | 1;
    unsigned __int128 product = (unsigned __int128)seal_payload(word) * key;
    return (uint32_t)(product >> 64) ^ (uint32_t)(product >> 32);
}

/* The same for a word of the segment table. */
static inline uint32_t sums_table_term(uint64_t seed, uint64_t offset, uint64_t word)
{
    return segment_kind(word) == SEGMENT_LOG ? 0 : sums_term(seed, offset, word);
}

#endif
