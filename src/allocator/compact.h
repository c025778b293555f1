/*
 * Where objects go when a container is compacted. This layer chooses and takes the room, and frees
 * what the layer above has then copied; it knows nothing of pointers.
 *
 *   slabs    of each size the fullest are filled, and the others emptied into them
 *   large    those that lie high go to where there is room lower down
 *   new      what is left of the first, and slabs that lie high, go to new slabs lower down
 *
 * Each in steps as small as the caller likes, with a commit after each, since room that is freed
 * can be taken only then. The file does not grow.
 *
 * Invariants
 *  E1  An object is moved at most once: what has been moved to is never moved from.
 *  E2  Objects without a gap between them move together, and stay side by side. Because: a pointer
 *      just past the end of one is a pointer to the next, and nobody knows which is meant. (Boehm's
 *      collector leaves a byte behind each object instead; there are containers without.) At the
 *      border of two segments too.
 *
 * Filling the fullest moves least: sliding all to one end, as mark-compact collectors do, would keep
 * the order of objects, which nobody asked for, and move nearly every one.
 *
 * Linear in slots and segments, and HOLE_LENGTHS times in those of the slabs that are filled.
 */
#ifndef PM_ALLOCATOR_COMPACT_H
#define PM_ALLOCATOR_COMPACT_H

#include "allocator/allocator.h"

/* Runs up to this length look for holes each on its own, so that each slot is looked at once. */
#define HOLE_LENGTHS 16

/* An object on its way; offsets in the file. */
struct move {
    uint64_t from, to, bytes;
};

/* A slab as it was when compaction began. */
struct slab_census {
    uint32_t object_size;
    uint32_t segment;
    uint32_t used; /* slots */
};

enum compaction_phase {
    COMPACT_SLABS,
    COMPACT_LARGE,
    COMPACT_NEW,
    COMPACT_LARGE_AGAIN, /* for which there may be room by now */
    COMPACT_DONE
};

/* How far it is: a value, so that a step that has been rolled back can be taken again. */
struct compaction_cursor {
    enum compaction_phase phase;
    uint32_t group, group_end; /* slabs of one size in the census */
    uint32_t targets;          /* those before it are filled, the others emptied */
    uint32_t left;             /* of those, how many are not empty yet: for COMPACT_NEW */
    uint32_t source;           /* the one after the slab that is being emptied */
    uint32_t slot;             /* of that slab, looked at next */
    struct {
        uint32_t target, slot;
    } holes[HOLE_LENGTHS];      /* no hole so long before it */
    uint32_t fresh, fresh_slot; /* segment of the new slab, or SLAB_NONE; its first free slot */
    uint32_t segment;           /* large objects behind it have been looked at */
};

struct compaction {
    struct allocator *a;
    uint32_t end; /* segments that all would fit into: what lies behind is to be emptied */
    struct slab_census *census; /* by size; then by rank, those to be filled first */
    uint32_t census_count;
    uint8_t *placed; /* per segment: it was taken, so that objects are moved there (E1) */
    struct compaction_cursor at;
};

/* All of these are called with the allocator's lock held. */

/* Look at what there is. Nothing has changed since the last commit. -1 with a message. */
int compaction_begin(struct compaction *k, struct allocator *a);

/* Whether it began, failed to, or is all zero. */
void compaction_end(struct compaction *k);

/*
 * Take room for the next objects to be moved: those of one segment at least, then no more than
 * `most`. `moves` has room for `most` and a segment's. `*count` is 0 when nothing is left to do. -1
 * with a message.
 */
int compaction_next(struct compaction *k, uint32_t most, struct move *moves, uint32_t *count);

/* Free what has been copied; `moves` are in order of `from`. */
void compaction_free(struct compaction *k, const struct move *moves, uint32_t count);

/* Give back slabs that are empty, with the next commit. */
void allocator_free_empty(struct allocator *a);

/* Objects of the container, their bytes, and the segments that hold them. */
struct occupancy {
    uint64_t objects, object_bytes;
    uint64_t segments;
};

struct occupancy allocator_occupancy(struct allocator *a);

#endif
