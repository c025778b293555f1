/*
 * The only way from the example structures to the allocator.
 *
 * Each structure is ordinary C: it allocates memory, follows plain pointers, and frees memory. This
 * header decides at compile time where the memory comes from:
 *
 *     (default)            a libpm container: the structure survives crashes
 *     -DEXAMPLE_VOLATILE   malloc(3); the container argument is ignored and no libpm is linked
 *
 * So a benchmark can compare persistent and volatile runs of the same source. And a reader can see that
 * nothing else in the structure had to change. Neither way costs more than its allocator.
 */
#ifndef EXAMPLES_MEMORY_H
#define EXAMPLES_MEMORY_H

#include <libpm.h>

#include <stddef.h>
#include <stdlib.h>

/** Allocate `size` bytes, uninitialised and aligned to 16. Free them by mem_free(). NULL if memory runs
 * out. */
static inline void *mem_alloc(pm_container *c, size_t size)
{
#ifdef EXAMPLE_VOLATILE
    (void)c;
    return malloc(size);
#else
    return pm_malloc(c, size);
#endif
}

/** Free memory that mem_alloc() returned for the same container. NULL is allowed. */
static inline void mem_free(pm_container *c, void *ptr)
{
    (void)c;
#ifdef EXAMPLE_VOLATILE
    free(ptr);
#else
    pm_free(ptr); /* fails only for a pointer that is no object: a bug of the caller */
#endif
}

#endif
