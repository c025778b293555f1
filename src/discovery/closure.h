/* What moves, where to, and what has been redirected: the inside of a commit that discovers. */
#ifndef PM_DISCOVERY_CLOSURE_H
#define PM_DISCOVERY_CLOSURE_H

#include "discovery/discovery.h"
#include "discovery/heap.h"

/* An object that moves. While it does its first word is the index of this. */
struct move {
    struct heap_object from;
    char *to;
    uint64_t first; /* what its first word was */
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

/* Where a value leads once what moves has moved; `object` is what it leads to, and moves. */
static inline uint64_t moved_value(const struct discovery *d, uint64_t value,
                                   const struct heap_object *object)
{
    uint64_t i = *(uint64_t *)object->start;
    return (uint64_t)move_at(d, i)->to + (value - (uint64_t)object->start);
}

/* Gather what the words found, and the new root, lead to. -1 with a message. */
int closure_gather(struct discovery *d);

/* Redirect all that leads to what has been gathered. -1 with a message. */
int closure_redirect(struct discovery *d, const struct roots_range *stack);

/* Put all back as it was. */
void closure_undo(struct discovery *d);

/* It is done: free the old memory. */
void closure_release(struct discovery *d);

#endif
