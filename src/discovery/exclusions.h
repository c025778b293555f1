/*
 * Fields that discovery does not follow, and that read NULL when a container is opened again:
 * pm_exclude(). They may be on the heap, and move with their object, or in a container, where a
 * commit records NULL while the program keeps what it has.
 *
 * A list that is searched from one end: programs exclude a handful.
 */
#ifndef PM_DISCOVERY_EXCLUSIONS_H
#define PM_DISCOVERY_EXCLUSIONS_H

#include "pointer/map.h"

extern _Atomic uint32_t exclusions_count;

static inline bool exclusions_any(void)
{
    return atomic_load_explicit(&exclusions_count, memory_order_relaxed) > 0;
}

/* All lock. add: 0, or -ENOMEM; again is no more than once. remove: whether it was there. */
int exclusions_add(uint64_t *field);
bool exclusions_remove(const uint64_t *field);
bool exclusions_have(const uint64_t *field);

/* [from, from + bytes) is at `to` from now on; or, if that is NULL, has been freed. In a container
 * either is for its open transaction only. */
void exclusions_move(const void *from, uint64_t bytes, const void *to);

/* The container is about to be closed. */
void exclusions_forget(const struct container *c);

/* Call `visit` for each. */
void exclusions_each(void (*visit)(void *context, uint64_t *field), void *context);

/* Have the fields in a container be NULL for its commit; then be what they were before that, which a
 * rollback brings back if they are committed. */
void exclusions_hide(struct txn *t);
void exclusions_show(struct txn *t, bool is_committed);

/* While they are hidden, and nobody else uses the container: [from, from + bytes) has been moved to `to`
 * by commits of its own. Fields follow, and what they will be. */
void exclusions_follow(const struct container *c, const void *from, uint64_t bytes, const void *to);

/* After a rollback: those in a container are where and as at its last commit, if their objects are
 * there. */
void exclusions_restore(struct allocator *a);

#endif
