/*
 * The contents of a container, checked: its slabs, their slots in use, its large objects.
 * Seals and checksums show damage, but not who wrote a word. So all code that walks objects asks here, and
 * does not read the words itself. Nothing is allocated, and nothing remembered.
 *
 * `struct contents` names one copy of the tables: home's, as the last commit left them, or the shadow's, as
 * the open transaction has them. The caller holds the lock that keeps the copy still.
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
 * V3 relies on one property of the table: runs of large objects are whole. txn_open() has checked it.
 *
 * malloc(), free() and commit use descriptors instead (allocator/slab.h). The descriptors' shapes are made
 * here. They clip every range of slots to the slab's slots; V1 is enough for this.
 */
#ifndef PM_CONTAINER_CONTENTS_H
#define PM_CONTAINER_CONTENTS_H

#include "container/container.h"

struct contents {
    const struct container *c;
    const char *tables; /* address of the container's first byte, in home or in the shadow */
    uint32_t segments;
};

static inline struct contents contents_committed(const struct container *c)
{
    return (struct contents){c, c->home, atomic_load(&c->segments)};
}

static inline struct contents contents_open(const struct container *c)
{
    return (struct contents){c, c->shadow, atomic_load(&c->segments)};
}

struct contents_slab {
    struct slab_shape shape;
    const uint64_t *bitmap;
    uint64_t first; /* offset of its first slot in the file */
};

/* The shape of a slab with this table word; false if no slab has such a word. */
bool contents_shape(const struct container *c, uint64_t word, struct slab_shape *shape);

/* Describe the slab in a segment; false if the segment is no slab. */
bool contents_slab(const struct contents *v, uint32_t segment, struct contents_slab *slab);

/* The slots in use that one word of a bitmap describes, a bit each. */
static inline uint64_t contents_used(const struct contents_slab *slab, uint32_t word)
{
    uint64_t bits = slab->bitmap[word];
    return seal_is_valid(bits) ? bits & bitmap_mask(word, 0, slab->shape.objects) : 0;
}

/* Whether a word of a slab's bitmap is sound; the slab has `objects` slots. */
static inline bool contents_is_sound(uint64_t bits, uint32_t word, uint32_t objects)
{
    return seal_is_valid(bits) && !(seal_payload(bits) & ~bitmap_mask(word, 0, objects));
}

/* The first object at `*offset` or behind it: its offset and its bytes; false if there is none. */
bool contents_next(const struct contents *v, uint64_t *offset, uint64_t *size);

/* The object to which the byte at `offset` belongs; false if there is none. */
bool contents_find(const struct contents *v, uint64_t offset, uint64_t *start, uint64_t *size);

/* A mask of the 8-byte words from `offset` on that belong to objects; the first word is bit 0. It covers
 * the words that one word of the pointer map describes. */
uint64_t contents_words(const struct contents *v, uint64_t offset);

#define OBJECT_TEXT 128 /* bytes, the NUL included */

/* Write `before` and the place of `offset` in its object, in words; "" if there is no object. */
void contents_describe(const struct container *c, uint64_t offset, const char *before,
                   char text[OBJECT_TEXT]);

#endif
