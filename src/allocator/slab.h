/* Slabs: bitmaps, and the lists of slabs that may have room. Private to this folder. */
#ifndef PM_ALLOCATOR_SLAB_H
#define PM_ALLOCATOR_SLAB_H

#include "allocator/allocator.h"

#define SLOT_FULL UINT32_MAX

static inline uint64_t segment_offset(const struct allocator *a, uint32_t segment)
{
    return (uint64_t)segment << a->c->segment_shift;
}

static inline uint64_t slot_offset(const struct allocator *a, const struct slab *s, uint32_t slot)
{
    return segment_offset(a, s->segment) + s->shape.header_bytes +
           (uint64_t)slot * s->shape.object_size;
}

/* The descriptor of a segment that is a slab now, or was at the last commit. Made at first use. */
struct slab *slab_load(struct allocator *a, uint32_t segment);

static inline struct slab *slab_of(struct allocator *a, uint32_t segment)
{
    struct slab *s = &a->slabs[segment];
    return s->loaded ? s : slab_load(a, segment);
}

/* A new slab of the open transaction, listed in its class; or NULL and `*error`, an errno value. */
struct slab *slab_create(struct allocator *a, uint32_t object_size, int *error);

/* The same in a segment that has already been taken for it. */
struct slab *slab_begin(struct allocator *a, uint32_t segment, uint32_t object_size);

/* Give out a slot, or SLOT_FULL. */
uint32_t slab_take(struct allocator *a, struct slab *s);

/* Take back a slot that is in use. */
void slab_put(struct allocator *a, struct slab *s, uint32_t slot);

/* Take slots [first, end), all of which may be given out. */
void slab_take_all(struct allocator *a, struct slab *s, uint32_t first, uint32_t end);

/* The number of adjacent slots from `first` on that may be given out, at most `most`. */
uint32_t slab_room(const struct allocator *a, const struct slab *s, uint32_t first, uint32_t most);

/* The number of slots that the open transaction has in use; SLOT_FULL if the bitmap is damaged. */
uint32_t slab_count(const struct allocator *a, const struct slab *s);

/* An empty slab's segment goes back to the container with this commit. */
void slab_give_back(struct allocator *a, struct slab *s);

/* Whether the open transaction has the slot in use. */
bool slab_uses(const struct allocator *a, const struct slab *s, uint32_t slot);

/* The slot whose first byte is at `offset` in the file, or SLOT_FULL. */
uint32_t slab_slot_at(const struct allocator *a, const struct slab *s, uint64_t offset);

bool slab_is_empty(const struct allocator *a, const struct slab *s);

void slab_list(struct allocator *a, struct slab *s);
void slab_unlist(struct allocator *a, struct slab *s);

/* Whether no other slab of its class is known to have room. */
bool slab_is_alone(struct allocator *a, const struct slab *s);

/* Tell txn which pages live or die with this commit, and list slabs that will have room again. */
void slab_note_pages(struct allocator *a, struct slab *s);

/* For txn_upcalls. About 5 ns a line, and 0.1 µs a page. */
unsigned slab_line_liveness(void *allocator, uint64_t line);
struct page_liveness slab_page_liveness(void *allocator, uint32_t page);

/* An object in use, found by the address of its first byte. */
struct object {
    struct slab *slab; /* NULL: large */
    uint32_t slot;     /* of the slab */
    uint32_t segment;
    uint64_t size; /* usable bytes */
};

/* -1 with EINVAL and a message if no object in use begins at `p`. The allocator's lock is held. */
int find_object(struct allocator *a, const void *p, struct object *object);

/* An object is freed, or moves away: its words are no pointers any more. The lock is held. */
void forget_pointers(struct allocator *a, uint64_t offset, uint64_t bytes);

/* First and last page of the file that a slot is on. */
struct page_range {
    uint32_t first, last;
};

static inline struct page_range slot_pages(const struct allocator *a, const struct slab *s,
                                           uint32_t slot)
{
    uint64_t offset = slot_offset(a, s, slot);
    return (struct page_range){(uint32_t)(offset >> PM_PAGE_SHIFT),
                               (uint32_t)((offset + s->shape.object_size - 1) >> PM_PAGE_SHIFT)};
}

#endif
