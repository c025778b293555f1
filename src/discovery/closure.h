/* The inside of a commit that discovers: moving objects, their copies, and the redirected words. */
#ifndef PM_DISCOVERY_CLOSURE_H
#define PM_DISCOVERY_CLOSURE_H

#include "discovery/discovery.h"
#include "discovery/heap.h"

/* An object that moves. While it moves, its first word is the index of this entry. */
struct move {
    struct heap_object from;
    char *to;
    uint64_t first; /* the old value of the object's first word */
};

/* A word outside the copies that has been redirected. */
struct change {
    uint64_t *word;
    uint64_t old;
};

static inline struct move *move_at(const struct discovery *d, uint64_t i)
{
    return (struct move *)d->moves.items + i;
}

/* The value that a pointer gets when its target has moved. `object` is the target, and moves. */
static inline uint64_t moved_value(const struct discovery *d, uint64_t value,
                                   const struct heap_object *object)
{
    uint64_t i = *(uint64_t *)object->start;
    return (uint64_t)move_at(d, i)->to + (value - (uint64_t)object->start);
}

/* Redirect everything that leads to the gathered objects. -1 with a message. */
int closure_redirect(struct discovery *d, const struct roots_range *stack);

/* Put all words back as they were, and drop the copies. */
void closure_undo(struct discovery *d);

/* The commit is done: free the old memory. */
void closure_release(struct discovery *d);

#endif
