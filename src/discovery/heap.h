/*
 * The volatile heap: where code compiled by `pmcc --discover` has what it allocates, until a commit
 * finds that a container's root reaches it. It lies at the end of the arena, so that
 *
 *   - whether an address is volatile memory of ours is one subtraction and one comparison
 *   - the marks which such code makes anyway (base/marks.h) tell what was stored there, and the
 *     kinds which words are pointers: nothing else need be done at a store (cards.h)
 *   - the object that an address is in is looked up in a table of spans
 *
 * Small objects lie in spans of 64 KiB, each of one size, as in a container's slabs; larger ones in
 * runs of spans. A thread has a cache of free objects of each size; a lock guards the rest.
 *
 * An object's memory is at least 8 bytes longer than what was asked for, as with glibc. So a pointer
 * to one past its end leads to it, and not to its neighbour. Of an aligned object these 8 bytes say how
 * it is aligned, for it must be so wherever it moves.
 *
 * Invariants
 *  H1  The kinds of free memory are KIND_NONE.
 *  H2  A byte of `live` is not 0 where a small object begins that is allocated, and nowhere else.
 *
 * Ideas: size-segregated spans and thread caches, Ghemawat and Menage, TCMalloc; glibc's tcache.
 */
#ifndef PM_DISCOVERY_HEAP_H
#define PM_DISCOVERY_HEAP_H

#include "base/bits.h"
#include "base/marks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_GRANULE    16
#define HEAP_SLACK      8 /* bytes behind each object, at least */
#define HEAP_SPAN_SHIFT 16
#define HEAP_SPAN       (UINT64_C(1) << HEAP_SPAN_SHIFT)
#define HEAP_SMALL_MAX  (UINT64_C(32) << 10) /* of a small object, its slack included */

static inline bool heap_contains(const void *address)
{
    return (uintptr_t)address - VOLATILE_BASE < VOLATILE_SIZE;
}

/*
 * Allocate, aligned to 16 or to a larger power of two. NULL when there is no memory, or no address
 * space for a heap. Thread-safe.
 *
 * All zeros: of a word in which a program sets bits, as std::vector<bool> does, the others would be what
 * they were in an object that has been freed, a pointer perhaps; and discovery would believe it, and
 * redirect it, the program's bits and all.
 */
void *heap_allocate(size_t size);
void *heap_allocate_aligned(size_t alignment, size_t size);

/* For panic_address(): a call was given what is in the heap, but is no object's start. */
#define HEAP_NO_OBJECT                                                                             \
    "no malloc'ed object begins there: it has been freed, or the pointer is wrong; pass what "     \
    "malloc() returned, and free it once"

/* Free what begins at `p`, in the heap. Ends the process with a message if nothing does. */
void heap_free(void *p);

enum heap_state {
    HEAP_NONE, /* no object was ever there */
    HEAP_FREE, /* one was, and has been freed */
    HEAP_LIVE,
};

struct heap_object {
    char *start;
    uint64_t size;      /* asked for, or little more */
    uint64_t alignment; /* asked for, or HEAP_GRANULE */
    bool moves;         /* heap_set_moves() */
};

/* What an address of the heap leads to, be it one past an object's end. */
enum heap_state heap_find(const void *address, struct heap_object *object);

/* Note of a live object that it is moving to a container, or is not after all. */
void heap_set_moves(const struct heap_object *object, bool moves);

/* Whether an address, be it of the heap or not, leads to an object that moves, and to which. Where
 * none in its span does that costs no look at the object's own byte, which is seldom in the cache. */
bool heap_find_moving(const void *address, struct heap_object *object);

/* The live object behind the one that begins at object->start; the first if that is NULL. False if
 * there are no more. Linear in what it passes; nobody else uses the heap. */
bool heap_next(struct heap_object *object);

#endif
