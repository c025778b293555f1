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

/* Room for `more` items of a size, behind those that there are; NULL if there is no memory. The old items may
 * move. Amortised constant. */
static inline void *vector_extend(struct vector *v, uint64_t more, size_t size)
{
    uint64_t room = v->room ? v->room : 64;
    while (v->count + more > room)
        room *= 2;
    if (room > v->room) {
        void *items = realloc(v->items, room * size);
        if (!items)
            return NULL;
        v->items = items;
        v->room = room;
    }
    return (char *)v->items + v->count * size;
}

/* One more item, likewise. */
static inline void *vector_push(struct vector *v, size_t size)
{
    void *item = vector_extend(v, 1, size);
    v->count += item != NULL;
    return item;
}

static inline void vector_free(struct vector *v)
{
    free(v->items);
    *v = (struct vector){.items = NULL};
}

#endif
