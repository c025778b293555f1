/*
 * Questions about ranges of a slab's slots, answered by whole words of its bitmap. A commit asks them
 * about every changed line and page, so they take a few instructions a word. Words are sealed, so each
 * has BITMAP_SLOTS slots. No answer depends on a seal.
 */
#ifndef PM_ALLOCATOR_BITMAP_H
#define PM_ALLOCATOR_BITMAP_H

#include "container/format.h"

/* Whether any of slots [first, first + count) is in use. All must be in one word, as the slots that touch a
 * cache line are. */
static inline bool bitmap_any_of_few(const uint64_t *bitmap, uint32_t first, uint32_t count)
{
    return bitmap[first / BITMAP_SLOTS] >> first % BITMAP_SLOTS << (64 - count);
}

static_assert(BITMAP_SLOTS * FORMAT_GRANULARITY_MIN % PM_LINE == 0,
              "a word of the bitmap speaks for whole lines, whatever the size of its objects");

/* Whether all of slots [first, end) are in use. */
static inline bool bitmap_all(const uint64_t *bitmap, uint32_t first, uint32_t end)
{
    for (uint32_t w = first / BITMAP_SLOTS; w * BITMAP_SLOTS < end; w++)
        if (~bitmap[w] & bitmap_mask(w, first, end))
            return false;
    return true;
}

/* Whether any of slots [first, end) is in use. */
static inline bool bitmap_any(const uint64_t *bitmap, uint32_t first, uint32_t end)
{
    for (uint32_t w = first / BITMAP_SLOTS; w * BITMAP_SLOTS < end; w++)
        if (bitmap[w] & bitmap_mask(w, first, end))
            return true;
    return false;
}

#endif
