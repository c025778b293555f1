/*
 * Spans: what the volatile heap's addresses are used for, in units of 64 KiB. A *run* is some that
 * are adjacent and used together, or free together. All of it is guarded by the heap's lock, but
 * what a span is used for may be read without, by who knows that it is not just changing.
 *
 * Free runs know their neighbours by boundary tags (Knuth, TAOCP 1, 2.5): the entries of a run's
 * first and last span say where its other end is.
 */
#ifndef PM_DISCOVERY_SPANS_H
#define PM_DISCOVERY_SPANS_H

#include "discovery/heap.h"

#include <assert.h>

enum span_use { SPAN_NEVER, SPAN_FREE, SPAN_SMALL, SPAN_LARGE };

struct span {
    enum span_use use;
    uint32_t first, count;   /* of its run; `count` in the first only, and `first` in both ends of a
                              free run, in all spans of a large object */
    uint32_t next, previous; /* in a list of free runs, or of a size's spans with room; 0: none */
    /* of small objects */
    uint32_t granules; /* of one */
    uint32_t inverse;  /* to divide by it */
    uint32_t carved;   /* granules that have been objects, from the start */
    uint32_t out;      /* objects that are allocated, or free in a thread's cache */
    bool has_room;     /* it is on its size's list */
    void *list;        /* free objects, each beginning with a pointer to the next */
    /* of a large one */
    uint64_t bytes;     /* asked for */
    uint64_t alignment; /* asked for, or HEAP_GRANULE */
    /* of both */
    uint32_t moving; /* objects, see heap_set_moves() */
};

#define SPANS (VOLATILE_SIZE >> HEAP_SPAN_SHIFT)

/* Those before stay unused. From here on the lower half of an address is no small number: behind the
 * upper half of one, which padding may hold, an int would lead to what is there. And the upper half is no
 * round number, as 0x5000 would be: two ints side by side, 20 KiB the second, would look like an address. */
#define SPANS_BEFORE                                                                               \
    (VOLATILE_SIZE >> 40 ? UINT64_C(0x1b60000000) : UINT64_C(0x60000000)) /* TSan's heap is small */
#define SPANS_FIRST ((uint32_t)(SPANS_BEFORE >> HEAP_SPAN_SHIFT))

static_assert(SPANS_FIRST < SPANS / 2, "most of the heap is left");

extern struct span *spans; /* SPANS entries */

static inline char *span_start(uint32_t span)
{
    return (char *)VOLATILE_BASE + ((uint64_t)span << HEAP_SPAN_SHIFT);
}

static inline uint32_t span_of(const void *address)
{
    return (uint32_t)(((uintptr_t)address - VOLATILE_BASE) >> HEAP_SPAN_SHIFT);
}

/* Which object of a span of small ones an address is in. */
static inline uint32_t span_index(const struct span *s, const void *address)
{
    uint64_t granule = (uintptr_t)address % HEAP_SPAN / HEAP_GRANULE;
    return (uint32_t)(granule * s->inverse >> 24);
}

/* A run of `count` spans, the first at a multiple of `alignment` spans; 0: there is no room. Their
 * use is the caller's to set. */
uint32_t spans_take(uint32_t count, uint32_t alignment);

void spans_give(uint32_t first, uint32_t count);

/* Behind the last span that was ever used. */
uint32_t spans_end(void);

#endif
