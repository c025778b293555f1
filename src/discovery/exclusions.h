/*
 * Fields that discovery does not follow, and that read NULL when a container is opened again:
 * pm_exclude(). A field may be on the heap, and then moves with its object. Or it may be in a container.
 * Then a commit records NULL, while the program keeps the field's value.
 *
 * The list is searched from one end, because programs exclude only a handful of fields.
 */
#ifndef PM_DISCOVERY_EXCLUSIONS_H
#define PM_DISCOVERY_EXCLUSIONS_H

#include "pointer/pointers.h"

extern _Atomic uint32_t exclusions_count;

static inline bool exclusions_any(void)
{
    return atomic_load_explicit(&exclusions_count, memory_order_relaxed) > 0;
}

/* All these functions take the lock. exclusions_add(): 0, or -ENOMEM; adding a field again has no effect.
 * exclusions_remove(): true if the field was in the list. */
int exclusions_add(uint64_t *field);
bool exclusions_remove(const uint64_t *field);
bool exclusions_have(const uint64_t *field);

/* The memory [from, from + bytes) is at `to` from now on; if `to` is NULL, it has been freed. In a
 * container either holds only for the open transaction. */
void exclusions_move(const void *from, uint64_t bytes, const void *to);

/* Call this before a container is closed. */
void exclusions_forget(const struct container *c);

/* Call `visit` for each field. */
void exclusions_each(void (*visit)(void *context, uint64_t *field), void *context);

/* exclusions_hide() sets the fields in a container to NULL for its commit. exclusions_show() gives them
 * back their values. If the fields are committed, a rollback restores these values. */
void exclusions_hide(struct txn *t);
void exclusions_show(struct txn *t, bool is_committed);

/* Commits of the container itself have moved [from, from + bytes) to `to`, while its fields are hidden
 * and nobody else uses it. Fields, and their hidden values, follow. */
void exclusions_follow(const struct container *c, const void *from, uint64_t bytes, const void *to);

/* A commit of `c`, or a detachment from it, has moved the object at [from, from + bytes) to `to`. Fields of
 * other containers may hide a pointer to it, or get one back by a rollback. Both follow the object. A
 * rollback of `c` brings the object itself back, so its own fields keep the old pointer. */
void exclusions_retarget(const struct container *c, const void *from, uint64_t bytes, const void *to);

/* After a rollback: give the fields in a container the place and value of its last commit. If the object
 * of a field is gone, drop the field. */
void exclusions_restore(struct allocator *a);

#endif
