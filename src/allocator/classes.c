/*
 * Computes a class from a size by shifts, without a table. A division would take longer than all the rest.
 * Only sizes above an eighth of a segment divide: they try 7, 6, 5, 4, 3 and 2 objects a slab.
 */
#include "allocator/classes.h"

#define STEPS 8u /* linear classes at the start, and steps a doubling after them */

/* Class and size for `size` granules: the least m * 2^k >= size with STEPS <= m < 2 * STEPS, or
 * size itself below that. */
static uint32_t geometric(uint64_t granules, uint64_t *rounded)
{
    if (granules <= STEPS) {
        *rounded = granules;
        return (uint32_t)granules - 1;
    }
    uint32_t shift = (uint32_t)(63 - __builtin_clzll(granules - 1)) - 3; /* log2(STEPS) */
    uint64_t step = ((granules - 1) >> shift) + 1; /* STEPS + 1 ... 2 * STEPS */
    *rounded = step << shift;
    return STEPS - 1 + shift * STEPS + (uint32_t)(step - STEPS);
}

static uint32_t geometric_count(const struct container *c)
{
    uint64_t rounded;
    return geometric(c->segment_size / 8 / c->granularity, &rounded) + 1;
}

uint32_t class_count(const struct container *c)
{
    return geometric_count(c) + 6;
}

uint32_t class_of(const struct container *c, uint64_t size, uint32_t *object_size)
{
    uint64_t g = c->granularity, rounded;
    if (size <= c->segment_size / 8) {
        /* g is a power of two: a shift. A division would take longer than all the rest. */
        uint32_t shift = (uint32_t)__builtin_ctzll(g);
        uint32_t class = geometric(align_up(size, g) >> shift, &rounded);
        *object_size = (uint32_t)(rounded << shift);
        return class;
    }
    uint64_t room = c->segment_size - PM_PAGE; /* slabs of these sizes have one page of bitmap */
    for (uint32_t fit = 7; fit >= 2; fit--) {
        uint64_t most = align_down(room / fit, g);
        if (size <= most) {
            *object_size = (uint32_t)most;
            return geometric_count(c) + 7 - fit;
        }
    }
    return CLASS_LARGE;
}
