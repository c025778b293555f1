/*
 * An array of fields, under one lock. Each entry has two places: where the field is now, and where a
 * rollback brings it back. A field of a container that is freed, or included again, keeps its entry
 * until a commit, because a rollback may revive it.
 *
 * To hide a field, a commit stores NULL there, with marks, and stores the value again afterwards. So the
 * record has NULL, and the program finds its value.
 */
#include "discovery/exclusions.h"

#include "base/fork.h"
#include "base/lock.h"
#include "base/vector.h"
#include "discovery/heap.h"

#include <errno.h>
#include <sched.h>

struct exclusion {
    uint64_t *field;  /* NULL: freed or included again, but a rollback may bring it back */
    uint64_t *before; /* where a rollback brings the field back */
    uint64_t value;   /* if in a container: the value at its last commit */
    uint64_t hidden;  /* the value while a commit hides it */
    const struct container *hider; /* whose commit hides it now, or NULL */
    bool is_committed;             /* if in a container: its last commit has hidden it */
    bool is_freed_beside;          /* freed beside that commit, so in the next transaction */
};

_Atomic uint32_t exclusions_count;
static struct lock exclusions_lock; /* guards the list */
static struct vector list;

/* A child of fork(2) may free objects with excluded fields, on its copy of the heap. */
static __attribute__((constructor(101))) void begin(void)
{
    fork_take(FORK_EXCLUSIONS, &exclusions_lock);
}

static struct exclusion *at(uint64_t i)
{
    return (struct exclusion *)list.items + i;
}

/* The entry whose field is there, and was at `before` unless that is NULL; the number of entries if none. */
static uint64_t find(const uint64_t *field, const uint64_t *before)
{
    uint64_t i = 0;
    while (i < list.count && (at(i)->field != field || (before && at(i)->before != before)))
        i++;
    return i;
}

/* The same. If a commit hides the field, wait until it shows the field again. Called and left with the
 * lock. */
static uint64_t find_shown(const uint64_t *field)
{
    uint64_t i;
    while ((i = find(field, NULL)) < list.count && at(i)->hider) {
        lock_release(&exclusions_lock);
        sched_yield();
        lock_acquire(&exclusions_lock);
    }
    return i;
}

static void drop(uint64_t i)
{
    *at(i) = *at(--list.count);
    atomic_fetch_sub(&exclusions_count, 1);
}

int exclusions_add(uint64_t *field)
{
    lock_acquire(&exclusions_lock);
    uint64_t i = find(field, NULL);
    if (i == list.count) /* included again in this transaction? */
        i = find(NULL, field);
    bool is_new = i == list.count;
    struct exclusion *e = is_new ? vector_push(&list, sizeof *e) : NULL;
    if (!is_new) {
        at(i)->field = field;
    } else if (e) {
        *e = (struct exclusion){.field = field, .before = field};
        atomic_fetch_add(&exclusions_count, 1);
    }
    lock_release(&exclusions_lock);
    return is_new && !e ? -ENOMEM : 0;
}

bool exclusions_remove(const uint64_t *field)
{
    lock_acquire(&exclusions_lock);
    uint64_t i = find_shown(field);
    bool was_there = i < list.count;
    if (was_there && !at(i)->is_committed)
        drop(i);
    else if (was_there)
        at(i)->field = NULL; /* the next commit drops it, and a rollback brings it back */
    lock_release(&exclusions_lock);
    return was_there;
}

bool exclusions_have(const uint64_t *field)
{
    lock_acquire(&exclusions_lock);
    bool has = find(field, NULL) < list.count;
    lock_release(&exclusions_lock);
    return has;
}

void exclusions_move(const void *from, uint64_t bytes, const void *to)
{
    if (!exclusions_any() || bytes == 0)
        return;
    lock_acquire(&exclusions_lock);
    for (uint64_t i = list.count; i-- > 0;) {
        uint64_t offset = (uint64_t)at(i)->field - (uint64_t)from;
        if (offset >= bytes)
            continue;
        if (!to && heap_contains(at(i)->before))
            drop(i);
        else
            at(i)->field = to ? (uint64_t *)((char *)(uintptr_t)to + offset) : NULL;
    }
    lock_release(&exclusions_lock);
}

/* From here on no rollback brings back an earlier state of the fields. */
static void settle(const struct container *c)
{
    for (uint64_t i = list.count; i-- > 0;) {
        struct exclusion *e = at(i);
        if (!container_holds(c, e->field) && !container_holds(c, e->before))
            continue;
        if (e->is_freed_beside) {
            e->is_freed_beside = false;
            continue;
        }
        e->before = e->field;
        e->is_committed &= container_holds(c, e->field);
        if (!e->field)
            drop(i);
    }
}

void exclusions_forget(const struct container *c)
{
    exclusions_move(c->base, c->max_size, NULL);
    lock_acquire(&exclusions_lock);
    settle(c);
    lock_release(&exclusions_lock);
}

void exclusions_each(void (*visit)(void *context, uint64_t *field), void *context)
{
    lock_acquire(&exclusions_lock);
    for (uint64_t i = 0; i < list.count; i++)
        if (at(i)->field)
            visit(context, at(i)->field);
    lock_release(&exclusions_lock);
}

/* Store as compiled code does, with marks. */
static void store(struct txn *t, uint64_t *field, uint64_t value)
{
    uint64_t offset = (uint64_t)((char *)field - t->c->base);
    track_mark_range(t, offset, sizeof *field, MARK_AHEAD);
    track_set_kind(t, offset, sizeof *field, KIND_POINTER);
    *field = value;
}

void exclusions_hide(struct txn *t)
{
    lock_acquire(&exclusions_lock);
    for (uint64_t i = 0; i < list.count; i++)
        if (container_holds(t->c, at(i)->field)) {
            at(i)->hidden = *at(i)->field;
            at(i)->hider = t->c;
            if (at(i)->hidden)
                store(t, at(i)->field, 0);
        }
    lock_release(&exclusions_lock);
}

void exclusions_follow(const struct container *c, const void *from, uint64_t bytes, const void *to)
{
    uint64_t distance = (uint64_t)to - (uint64_t)from;
    exclusions_move(from, bytes, to);
    lock_acquire(&exclusions_lock);
    for (uint64_t i = 0; i < list.count; i++)
        if (container_holds(c, at(i)->field) && at(i)->hidden - (uint64_t)from <= bytes)
            at(i)->hidden += distance;
    lock_release(&exclusions_lock);
}

void exclusions_retarget(const struct container *c, const void *from, uint64_t bytes, const void *to)
{
    uint64_t distance = (uint64_t)to - (uint64_t)from;
    if (!exclusions_any())
        return;
    lock_acquire(&exclusions_lock);
    for (uint64_t i = 0; i < list.count; i++) {
        struct exclusion *e = at(i);
        if (e->value - (uint64_t)from < bytes && !container_holds(c, e->before))
            e->value += distance;
        if (e->hider && e->hidden - (uint64_t)from < bytes)
            e->hidden += distance;
    }
    lock_release(&exclusions_lock);
}

void exclusions_restore(struct allocator *a)
{
    uint64_t start, size;
    lock_acquire(&a->lock);
    lock_acquire(&exclusions_lock);
    for (uint64_t i = list.count; i-- > 0;) {
        struct exclusion *e = at(i);
        if (container_holds(a->c, e->before))
            e->field = e->before;
        if (!container_holds(a->c, e->field))
            continue;
        if (!allocator_object_at(a, e->field, &start, &size))
            drop(i);
        else if (e->value)
            store(a->t, e->field, e->value);
    }
    lock_release(&exclusions_lock);
    lock_release(&a->lock);
}

void exclusions_show(struct txn *t, bool is_committed)
{
    lock_acquire(&exclusions_lock);
    for (uint64_t i = 0; i < list.count; i++) {
        struct exclusion *e = at(i);
        if (e->hider != t->c)
            continue; /* excluded since */
        e->hider = NULL;
        if (is_committed) {
            e->value = e->hidden;
            e->is_committed = true;
            e->is_freed_beside = !e->field;
        }
        if (container_holds(t->c, e->field) && e->hidden)
            store(t, e->field, e->hidden);
    }
    if (is_committed)
        settle(t->c);
    lock_release(&exclusions_lock);
}
