/*
 * What code that tells its stores (tracker `stores`) has told of the open transaction. This is the list of
 * marked lines, for whoever wants to read it; src/track/ writes it. The marks themselves, and the kinds of
 * words, are in tables that compiled code reads too (base/marks.h).
 *
 * Invariants
 *  T1  A line whose byte in the table of marks is set is in `marked`, or in `objects`, or its page is LISTED;
 *      under `stores` only. An entry of `marked` whose line's byte is not set is void. It comes from a mark
 *      that a signal handler left, or from an earlier transaction. A line may have two entries.
 *  T2  An image has home's contents of the line. It is taken from the view before the line's first store.
 *      So a commit finds changes without reading home, whose lines are rarely in a cache. Two exceptions:
 *      a commit that fails may have written home's fresh pages. This happens only on a file, where these
 *      pages are LISTED and compared with home. And a missed store before the line's mark is in the image,
 *      but not in home: track/audit.c. A delta of the log engine lacks it, and a crash undoes it.
 *  T3  The lines of a new object of a slab may be marked together, before the program gets the object. They
 *      are one run in `objects`, and have no images. The object shares none of them with another, neither now
 *      nor at the last commit. They had no marks, and their pages were open. So no line is in two runs. The
 *      program may never store to a line of a run. If the transaction has freed a new object since
 *      (`freed_new` of struct txn), there may be no object on the lines, or another one.
 */
#ifndef PM_PAGES_TRACKER_H
#define PM_PAGES_TRACKER_H

#include "base/marks.h"
#include "pages/pages.h"

#include <emmintrin.h>

/* At most this many marked lines have an image: 4 MiB of images. */
#define IMAGES_MAX (UINT64_C(1) << 16)

/* The words of one line, compared and copied as a whole. */
typedef uint64_t line_image __attribute__((vector_size(PM_LINE)));

/* At most this many new objects have a run of lines. The lines of further objects are marked one by one. */
#define OBJECTS_MAX (UINT64_C(1) << 16)

/* Bytes of the smallest object that has a run. From 128 bytes on a run saves instructions. But if a commit
 * writes whole objects, objects with unused lines cost more. A B-tree with nodes of 184 bytes wrote 4 %
 * more. */
#define OBJECT_MIN 256u

/* Bytes of the largest, if a commit compares the lines, and if it writes all of them. */
#define COMPARED_OBJECT_MAX (16 * PM_PAGE)
#define WRITTEN_OBJECT_MAX  PM_PAGE

struct tracker {
    bool stores;      /* code marks what it stores to */
    bool kinds;       /* kinds of stores become the pointer map: the program vouches for it */
    bool audit;       /* every commit looks for stores without a mark */
    uint64_t *marked; /* lines marked in this transaction; not NULL under redo */
    _Atomic uint64_t count;
    uint64_t most;       /* from this count on, a line that is to be marked has its page listed instead */
    line_image *images;  /* images of the first IMAGES_MAX marked lines */
    bool *imaged;        /* per image: true if there is one, T2 */
    uint64_t *objects;   /* redo_run() values: the lines of new objects, T3 */
    _Atomic uint64_t object_count; /* discovery reads it without the allocator's lock */
    uint64_t object_lines;         /* in all runs */
    uint64_t object_max; /* bytes of the largest object that may have a run; 0: none may */
    uint32_t audit_hand; /* the page that the audit examined last */
    uint64_t escaped;    /* stores without a mark that the audit has found */
};

/* Capacity of the list of marks. */
uint64_t tracker_marks_max(const struct container *c);

/* Make the tables of marked lines. */
void tracker_load(struct tracker *k, struct container *c);

/* Clear the marks of the open transaction, also on listed pages. Either the view equals home, or a commit
 * has found all differences. */
void tracker_clear(struct tracker *k, const struct pages *p);

/* Clear the marks from `page` on. Their entries stay in `marked`, and are void. So a line that is marked
 * again has several. */
void tracker_forget(struct tracker *k, const struct pages *p, uint32_t page);

/* Give back the memory of the tables of marks. No mark is set now. */
void tracker_trim(const struct tracker *k, const struct container *c);

/* Give a new object a run, and mark the lines. There is room for it, and T3 holds. The allocator's lock is
 * held. */
void tracker_mark_object(struct tracker *k, const struct container *c, uint64_t line,
                         uint64_t lines);

/* Drop all images: they belong to other entries, or to lines whose contents nobody trusts. */
void tracker_drop_images(struct tracker *k, uint64_t entries);

/* The byte of a line in the table of marks. */
static inline uint8_t *line_mark(const struct container *c, uint64_t line)
{
    return mark_of(c->base + line * PM_LINE);
}

/* The value of this byte for a marked line. */
static inline uint8_t tracker_mark(const struct tracker *k)
{
    return k->kinds ? MARK_LINE | MARK_KINDS : MARK_LINE;
}

/* True if an entry of `marked` belongs to this transaction: T1. */
static inline bool line_is_marked(const struct container *c, uint64_t line)
{
    return *line_mark(c, line) != 0;
}

/* The kinds of a line's words, one byte each. */
static inline uint8_t *line_kinds(const struct container *c, uint64_t line)
{
    return kinds_of(c->base + line * PM_LINE);
}

static inline bool line_images_differ(const void *a, const void *b)
{
    line_image d = *(const line_image *)a ^ *(const line_image *)b;
    return (d[0] | d[1] | d[2] | d[3] | d[4] | d[5] | d[6] | d[7]) != 0;
}

#define LINE_WORDS_ALL ((1u << PM_LINE_WORDS) - 1)

/* Which words of two lines differ: one bit each, the first word in bit 0. */
static inline uint32_t line_words_that_differ(const void *a, const void *b)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < PM_LINE_WORDS / 2; i++) {
        __m128i halves =
            _mm_cmpeq_epi32(((const __m128i *)a)[i], ((const __m128i *)b)[i]); /* of two words */
        __m128i swapped = _mm_shuffle_epi32(halves, _MM_SHUFFLE(2, 3, 0, 1));
        same |= (uint32_t)_mm_movemask_pd(_mm_castsi128_pd(_mm_and_si128(halves, swapped)))
                << 2 * i;
    }
    return same ^ LINE_WORDS_ALL;
}

#endif
