/*
 * The only door from the example structures to the allocator.
 *
 * Each structure in this folder is ordinary C: it asks for memory, follows plain pointers, gives
 * memory back. Where the memory comes from is decided here, at compile time:
 *
 *   (default)            a libpm container: what the structure holds survives crashes
 *   -DEXAMPLE_VOLATILE   malloc(3); the container argument is ignored and no libpm is linked
 *
 * So a benchmark can compare persistent and volatile runs of the very same source, and a reader can
 * see that nothing else in the structure had to change. Both ways cost nothing over the allocator.
 */
#ifndef EXAMPLES_MEMORY_H
#define EXAMPLES_MEMORY_H

#include <libpm.h>

#include <stddef.h>
#include <stdlib.h>

/** `size` bytes, uninitialised and aligned to 16; NULL when there are none. Freed by mem_free(). */
static inline void *mem_alloc(pm_container *c, size_t size)
{
#ifdef EXAMPLE_VOLATILE
    (void)c;
    return malloc(size);
#else
    return pm_malloc(c, size);
#endif
}

/** Give back what mem_alloc() returned for the same container; NULL is allowed. */
static inline void mem_free(pm_container *c, void *ptr)
{
    (void)c;
#ifdef EXAMPLE_VOLATILE
    free(ptr);
#else
    pm_free(ptr); /* fails only for a pointer that was never ours, which is a bug of the caller */
#endif
}

#endif
