/*
 * The one checked view of what a container holds: its slabs, their slots in use, its large objects.
 * Seals and checksums tell damage, not who wrote a word; so whatever walks objects asks here and not
 * the words themselves. Nothing is allocated and nothing is remembered.
 *
 * A view is of one copy of the tables: home's, as the last commit left them, or the shadow's, as the
 * open transaction has them. The caller holds the lock that keeps that copy still.
 *
 * Invariants, whatever the table and the bitmaps say:
 *
 *  V1  A slab's bitmap and slots lie in its segment. A large object lies in the file.
 *  V2  A slot is in use only if the slab has a slot of that number, the seal of its bitmap's word is
 *      right, and its bit is set.
 *  V3  Objects are told in order of address. No two have a byte in common, and none has a byte of
 *      metadata, log, pointer map or bitmap.
 *  V4  Every search ends: linear in the segments and bitmap words that it passes.
 *
 * Of the table V3 takes that runs of large objects are whole, which txn_open() has checked.
 *
 * malloc(), free() and commit go by descriptors instead (allocator/slab.h), whose shapes are made
 * here. They clip every range of slots to the slab's, for which V1 suffices.
 */
#ifndef PM_CONTAINER_VIEW_H
#define PM_CONTAINER_VIEW_H

#include "container/container.h"

struct view {
    const struct container *c;
    const char *tables; /* where the container's first byte is, in home or in the shadow */
    uint32_t segments;
};

static inline struct view view_committed(const struct container *c)
{
    return (struct view){c, c->home, atomic_load(&c->segments)};
}

static inline struct view view_open(const struct container *c)
{
    return (struct view){c, c->shadow, atomic_load(&c->segments)};
}

struct view_slab {
    struct slab_shape shape;
    const uint64_t *bitmap;
    uint64_t first; /* offset of its first slot in the file */
};

/* The shape of a slab with this table word; false if no slab has such a word. */
bool view_shape(const struct container *c, uint64_t word, struct slab_shape *shape);

/* The slab that a segment is; false if it is none. */
bool view_slab(const struct view *v, uint32_t segment, struct view_slab *slab);

/* The slots in use that one word of a bitmap speaks for, a bit each. */
static inline uint64_t view_used(const struct view_slab *slab, uint32_t word)
{
    uint64_t bits = slab->bitmap[word];
    return seal_is_valid(bits) ? bits & bitmap_mask(word, 0, slab->shape.objects) : 0;
}

/* Whether nothing is wrong with a word of the bitmap of a slab with so many slots. */
static inline bool view_is_sound(uint64_t bits, uint32_t word, uint32_t objects)
{
    return seal_is_valid(bits) && !(seal_payload(bits) & ~bitmap_mask(word, 0, objects));
}

/* The first object at `*offset` or behind it: where it begins, and its bytes; false if there is none. */
bool view_next(const struct view *v, uint64_t *offset, uint64_t *size);

/* The object that the byte at `offset` is of; false if it is of none. */
bool view_find(const struct view *v, uint64_t offset, uint64_t *start, uint64_t *size);

/* Which of the 8-byte words from `offset` on are words of objects: a bit each, the first in bit 0. They
 * are as many as a word of the pointer map speaks for. */
uint64_t view_words(const struct view *v, uint64_t offset);

#endif
