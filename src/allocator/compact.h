/*
 * Compaction: where objects go. This layer chooses the room and takes it. The layer above copies the
 * objects, and then this layer frees the old ones. It knows nothing of pointers.
 *
 *     slabs    of each size the fullest slabs are filled, and the other slabs emptied into them
 *     large    large objects that lie high go to room lower down
 *     new      objects left by the first phase, and slabs that lie high, go to new slabs lower down
 *
 * Each phase goes in steps as small as the caller likes, with a commit after each step. Freed room can be
 * taken only after a commit. The file does not grow.
 *
 * Invariants
 *  E1  A step moves no object twice, because it redirects each pointer once. The phases for slabs take
 *      nothing from a slab to which objects were moved. Large objects go to the lowest room that is long
 *      enough, and no room becomes free before the step's commit.
 *  E2  Objects without a gap between them move together, and stay side by side, also at the border of
 *      two segments. Why: a pointer just past the end of one object is a pointer to the next, and nobody
 *      knows which of the two is meant. (Boehm's collector leaves a byte behind each object instead.
 *      Existing containers have no such byte.)
 *
 * Filling the fullest slabs moves the fewest objects. Sliding all objects to one end, as mark-compact
 * collectors do, would move nearly every object. It would keep their order, which nobody asked for.
 *
 * Linear in slots and segments. Slabs that are filled count HOLE_LENGTHS times.
 */
#ifndef PM_ALLOCATOR_COMPACT_H
#define PM_ALLOCATOR_COMPACT_H

#include "allocator/allocator.h"

/* Each run length up to this one has its own search for holes, so that each looks once at each slot. */
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
    COMPACT_LARGE_AGAIN, /* other phases may have made room for large objects */
    COMPACT_DONE
};

/* The progress of a compaction. A value: a step that was rolled back can start again from it. */
struct compaction_cursor {
    enum compaction_phase phase;
    uint32_t group, group_end; /* slabs of one size in the census */
    uint32_t targets;          /* slabs before it are filled, the others emptied */
    uint32_t left;             /* slabs of the others that are not empty yet: for COMPACT_NEW */
    uint32_t source;           /* the slab after the one that is being emptied */
    uint32_t slot;             /* the next slot of the slab that is being emptied */
    struct {
        uint32_t target, slot;
    } holes[HOLE_LENGTHS];      /* per length: no hole so long lies before this slot */
    uint32_t fresh, fresh_slot; /* segment of the new slab, or SLAB_NONE; its first free slot */
    uint32_t segment;           /* large objects behind it have been looked at */
};

struct compaction {
    struct allocator *a;
    uint32_t end; /* all objects would fit before this segment; the segments behind are to be emptied */
    struct slab_census *census; /* by size; then by rank, those to be filled first */
    uint32_t census_count;
    uint8_t *placed; /* per segment: it was taken as a target for moves (E1) */
    struct compaction_cursor at;
};

/* All of these are called with the allocator's lock held. */

/* Take the census. Nothing has changed since the last commit. -1 with a message. */
int compaction_begin(struct compaction *k, struct allocator *a);

/* Call it whether compaction_begin() succeeded or failed, or `*k` is all zero. */
void compaction_end(struct compaction *k);

/*
 * Take room for the next objects to be moved: at least the objects of one segment, then no more than
 * `most`. `moves` has room for `most` and a segment's. `*count` is 0 when nothing is left to do. -1 with a
 * message.
 */
int compaction_next(struct compaction *k, uint32_t most, struct move *moves, uint32_t *count);

/* Free the copied objects; `moves` are in order of `from`. */
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
