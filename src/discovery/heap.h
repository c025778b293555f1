/*
 * The volatile heap. Code compiled by `pmcc --discover` allocates here. When a commit finds that a
 * container leads to an object, the object moves into the container. The heap lies at the end of the
 * arena, so that
 *
 *   - one subtraction and one comparison tell whether an address is in the heap
 *   - such code makes marks anyway (base/marks.h). They tell which words were stored to, and the kinds
 *     tell which words are pointers. So a store needs nothing else (cards.h)
 *   - a table of spans tells the object at an address
 *
 * Small objects lie in spans of 64 KiB, each with objects of one size, as in a container's slabs. Larger
 * objects lie in runs of spans. A thread has a cache of free objects of each size; a lock guards the
 * rest.
 *
 * An object's memory is at least 8 bytes longer than the program asked for, as with glibc. So a pointer
 * one past the object's end leads to this object, and not to its neighbour. In an aligned object these 8
 * bytes tell the alignment, because the object must keep it wherever it moves.
 *
 * Invariants
 *  H1  The kinds of free memory are KIND_NONE.
 *  H2  A byte of `live` is not 0 if and only if an allocated small object begins there.
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
#define HEAP_SMALL_MAX  (UINT64_C(32) << 10) /* largest small object, with its slack */

static inline bool heap_contains(const void *address)
{
    return (uintptr_t)address - VOLATILE_BASE < VOLATILE_SIZE;
}

/*
 * Allocate, aligned to 16 or to a larger power of two. NULL if there is no memory, or no address space
 * for a heap. Thread-safe.
 *
 * The memory is all zeros. Otherwise a freed object could leave a pointer in a word in which the program
 * sets single bits, as std::vector<bool> does. Discovery would take this word for a pointer, and would
 * redirect it together with the program's bits.
 */
void *heap_allocate(size_t size);
void *heap_allocate_aligned(size_t alignment, size_t size);

/* For panic_address(): the argument of a call is in the heap, but starts no object. */
#define HEAP_NO_OBJECT                                                                             \
    "no malloc'ed object begins there: it has been freed, or the pointer is wrong; pass what "     \
    "malloc() returned, and free it once"

/* Free the object that begins at `p`, in the heap. If no object begins there, it ends the process with a
 * message. */
void heap_free(void *p);

enum heap_state {
    HEAP_NONE, /* no object was ever there */
    HEAP_FREE, /* an object was there, and has been freed */
    HEAP_LIVE,
};

struct heap_object {
    char *start;
    uint64_t size;      /* the size asked for, or a little more */
    uint64_t alignment; /* the alignment asked for, or HEAP_GRANULE */
    bool moves;         /* heap_set_moves() */
};

/* Find the object at an address of the heap. An address one past an object's end leads to this object. */
enum heap_state heap_find(const void *address, struct heap_object *object);

/* Note that a live object is moving to a container, or that it does not move after all. */
void heap_set_moves(const struct heap_object *object, bool moves);

/* True if an address, in the heap or not, leads to an object that moves; `*object` gets the object. If no
 * object of the span moves, this does not read the object's own byte, which is seldom in the cache. */
bool heap_find_moving(const void *address, struct heap_object *object);

/* Find the live object behind the one that begins at object->start; the first if start is NULL. False if
 * there are no more. Linear in the memory it passes. Nobody else may use the heap. */
bool heap_next(struct heap_object *object);

#endif
