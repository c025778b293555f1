/*
 * Spans: the use of the volatile heap's addresses, in units of 64 KiB. A *run* is a row of adjacent spans
 * that are used together, or free together. The heap's lock guards everything here. A reader may read a
 * span's use without the lock if it knows that the use does not change meanwhile.
 *
 * Free runs know their neighbours by boundary tags (Knuth, TAOCP 1, 2.5). The entries of a run's first
 * and last span say where the other end is.
 */
#ifndef PM_DISCOVERY_SPANS_H
#define PM_DISCOVERY_SPANS_H

#include "discovery/heap.h"

#include <assert.h>

enum span_use { SPAN_NEVER, SPAN_FREE, SPAN_SMALL, SPAN_LARGE };

struct span {
    enum span_use use;
    uint32_t first, count;   /* of its run. `count` is set in the run's first span only. `first` is set at
                              * both ends of a free run, and in all spans of a large object */
    uint32_t next, previous; /* in a list of free runs, or of one size's spans with room; 0: none */
    /* For spans of small objects: */
    uint32_t granules; /* granules of one object */
    uint32_t inverse;  /* to divide by `granules` */
    uint32_t carved;   /* granules at the span's start that have been objects */
    uint32_t out;      /* objects that are allocated, or in a thread's cache */
    bool has_room;     /* the span is on its size's list */
    void *list;        /* free objects, each beginning with a pointer to the next */
    /* For a large object: */
    uint64_t bytes;     /* asked for */
    uint64_t alignment; /* asked for, or HEAP_GRANULE */
    /* For both: */
    uint32_t moving; /* number of moving objects, see heap_set_moves() */
};

#define SPANS (VOLATILE_SIZE >> HEAP_SPAN_SHIFT)

/* The first SPANS_BEFORE bytes stay unused. From there on the lower half of an address is no small
 * number. Otherwise padding might hold the upper half of an address, and an int before it would complete
 * the address. And the upper half is no round number like 0x5000. Otherwise two ints side by side, the
 * second being 20 KiB, would look like an address. */
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

/* The index of the object at an address, in a span of small objects. */
static inline uint32_t span_index(const struct span *s, const void *address)
{
    uint64_t granule = (uintptr_t)address % HEAP_SPAN / HEAP_GRANULE;
    return (uint32_t)(granule * s->inverse >> 24);
}

/* Take a run of `count` spans, the first at a multiple of `alignment` spans; 0: there is no room. The
 * caller sets the spans' use. */
uint32_t spans_take(uint32_t count, uint32_t alignment);

void spans_give(uint32_t first, uint32_t count);

/* The span behind the last span that was ever used. */
uint32_t spans_end(void);

#endif
