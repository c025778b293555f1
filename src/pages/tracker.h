/*
 * What code that tells its stores (tracker `stores`) has told of the open transaction. This is the list of
 * marked lines, for whoever wants to read it; src/track/ writes it. The marks themselves, and the kinds of
 * words, are in tables that compiled code reads too (base/marks.h).
 *
 * Invariants
 *  T1  A line whose byte in the table of marks is set is in `marked`, or its page is LISTED; under `stores`
 *      only. An entry whose line's byte is not set is void. It comes from a mark that a signal handler
 *      left, or from an earlier transaction. A line may have two entries.
 *  T2  An image has home's contents of the line. It is taken from the view before the line's first store.
 *      So a commit finds changes without reading home, whose lines are rarely in a cache. Two exceptions:
 *      a commit that fails may have written home's fresh pages. This happens only on a file, where these
 *      pages are LISTED and compared with home. And a missed store before the line's mark is in the image,
 *      but not in home: track/audit.c.
 */
#ifndef PM_PAGES_TRACKER_H
#define PM_PAGES_TRACKER_H

#include "base/marks.h"
#include "pages/pages.h"

/* At most this many marked lines have an image: 4 MiB of images. */
#define IMAGES_MAX (UINT64_C(1) << 16)

/* The words of one line, compared and copied as a whole. */
typedef uint64_t line_image __attribute__((vector_size(PM_LINE)));

struct tracker {
    bool stores;      /* code marks what it stores to */
    bool kinds;       /* kinds of stores become the pointer map: the program vouches for it */
    bool audit;       /* every commit looks for stores without a mark */
    uint64_t *marked; /* lines marked in this transaction; not NULL under redo */
    _Atomic uint64_t count;
    uint64_t most;       /* from this count on, a line that is to be marked has its page listed instead */
    line_image *images;  /* images of the first IMAGES_MAX marked lines */
    bool *imaged;        /* per image: true if there is one, T2 */
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

#endif
