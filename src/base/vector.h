/* An array that grows. Zero at first; released with vector_free(). */
#ifndef PM_BASE_VECTOR_H
#define PM_BASE_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct vector {
    void *items;
    uint64_t count, room;
};

/* Room for one more item of a size, at the end; NULL if there is no memory. The old items may move.
 * Amortised constant. */
static inline void *vector_push(struct vector *v, size_t size)
{
    if (v->count == v->room) {
        uint64_t room = v->room ? 2 * v->room : 64;
        void *items = realloc(v->items, room * size);
        if (!items)
            return NULL;
        v->items = items;
        v->room = room;
    }
    return (char *)v->items + v->count++ * size;
}

static inline void vector_free(struct vector *v)
{
    free(v->items);
    *v = (struct vector){.items = NULL};
}

#endif
