/*
 * The steps of a commit that discovers, around closure.c. All open containers that discover are in one list,
 * under a lock. An object can be in one container only. So before objects move, check_others() searches the
 * other containers for a pointer to them. Only words that an open transaction has stored can be one.
 *
 * If a step fails, discovery_end() puts back the root and all words, and gives back what was allocated.
 */
#define _GNU_SOURCE
#include "discovery/discovery.h"

#include "base/error.h"
#include "base/fork.h"
#include "base/lock.h"
#include "discovery/check.h"
#include "discovery/closure.h"
#include "discovery/exclusions.h"
#include "discovery/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static struct lock discovery_lock;
static struct lock list_lock;   /* guards the list; taken with the other lock or without */
static struct discovery *first; /* list of all open containers that discover */
static _Atomic uint32_t roots;  /* roots that the next commits bring; free(3) looks for them only then */

void discovery_enter(void)
{
    lock_acquire(&discovery_lock);
}

void discovery_leave(void)
{
    lock_release(&discovery_lock);
}

bool discovery_lets_lead_out(const uint64_t *word)
{
    struct heap_object object;
    return exclusions_have(word) ||
           (heap_contains((void *)*word) && heap_find((void *)*word, &object) == HEAP_LIVE);
}

static void take_root(struct discovery *d, void *root, size_t size)
{
    lock_acquire(&list_lock);
    atomic_fetch_add(&roots, (uint32_t)(root != NULL) - (d->root != NULL));
    d->root = root;
    d->root_size = size;
    d->root_freed = false;
    lock_release(&list_lock);
}

void discovery_drop_root(struct discovery *d)
{
    take_root(d, NULL, 0);
}

void discovery_open(struct discovery *d, struct allocator *a, bool vouched, bool refuse_freed)
{
    fork_take(FORK_DISCOVERY, &list_lock); /* a child may free objects, on its copy of the heap */
    lock_acquire(&list_lock);
    *d =
        (struct discovery){.a = a, .vouched = vouched, .refuse_freed = refuse_freed, .next = first};
    first = d;
    lock_release(&list_lock);
}

void discovery_close(struct discovery *d)
{
    if (!d->a)
        return;
    exclusions_forget(d->a->c);
    discovery_drop_root(d);
    lock_acquire(&list_lock);
    struct discovery **link = &first;
    while (*link != d)
        link = &(*link)->next;
    *link = d->next;
    lock_release(&list_lock);
    vector_free(&d->words);
    vector_free(&d->moves);
    vector_free(&d->changes);
    d->a = NULL;
}

static const char *path_of(const struct discovery *d)
{
    return d->a->c->path;
}

/* ---- check ----------------------------------------------------------------------------------- */

#define SHARED                                                                                     \
    "leads to a malloc'ed object that another container leads to as well, which is being "         \
    "committed; an object can be in one only"

/* Fail if another container leads to an object that moves. That container could never be committed. */
static int find_shared(void *context, uint64_t offset)
{
    const struct container *c = context;
    uint64_t *word = (uint64_t *)(c->base + offset);
    struct heap_object object;
    if (!heap_find_moving((void *)*word, &object) || (exclusions_any() && exclusions_have(word)))
        return 0;
    return pm__fail_at(c->path, offset, EINVAL, "the pointer %#" PRIx64 " " SHARED, *word);
}

static int check_other(const struct discovery *other)
{
    struct heap_object object;
    if (heap_find_moving(other->root, &object))
        return pm__fail(EINVAL, "%s: the new root %p " SHARED, path_of(other), other->root);
    return track_find_pointers(other->a->t, VOLATILE_BASE, VOLATILE_SIZE, find_shared, other->a->c);
}

static int check_others(const struct discovery *d)
{
    int result = 0;
    lock_acquire(&list_lock);
    for (struct discovery *other = first; other && result == 0; other = other->next)
        if (other != d)
            result = check_other(other);
    lock_release(&list_lock);
    return result;
}

/* ---- commit ---------------------------------------------------------------------------------- */

static int note_word(void *context, uint64_t offset)
{
    struct discovery *d = context;
    if (exclusions_any() && exclusions_have((uint64_t *)(d->a->c->base + offset)))
        return 0;
    uint64_t *word = vector_push(&d->words, sizeof *word);
    if (!word)
        return pm__fail(ENOMEM, "%s: no memory to note what leads out of it", path_of(d));
    *word = offset;
    return 0;
}

static void forget(struct discovery *d)
{
    d->words.count = d->moves.count = d->changes.count = 0;
    d->freed = 0;
    enum { KEPT = 4096 };
    if (d->moves.room > KEPT || d->changes.room > KEPT || d->words.room > KEPT) {
        vector_free(&d->words);
        vector_free(&d->moves);
        vector_free(&d->changes);
    }
}

int discovery_find(struct discovery *d)
{
    if (track_find_pointers(d->a->t, VOLATILE_BASE, VOLATILE_SIZE, note_word, d) == 0)
        return 0;
    forget(d);
    return -1;
}

void discovery_block_signals(sigset_t *saved)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* opens pages */
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, saved);
}

/* If the new root moves, set the container's root to its copy for this commit. */
static int redirect_root(struct discovery *d)
{
    struct heap_object object;
    if (!heap_find_moving(d->root, &object))
        return 0;
    d->old_root = allocator_root_object(d->a, &d->old_root_size);
    void *copy = (void *)moved_value(d, (uint64_t)d->root, &object);
    d->root_redirected = allocator_set_root(d->a, copy, d->root_size) == 0;
    return d->root_redirected ? 0 : -1;
}

int discovery_redirect(struct discovery *d, struct frame program, void *stack_top)
{
    if (d->moves.count > 0) {
        struct roots_range stack;
        if (check_alone(d, program, &stack) != 0 || check_others(d) != 0)
            return -1;
        stack.first = stack_top;
        if (closure_redirect(d, &stack) != 0)
            return -1;
    }
    return redirect_root(d);
}

void discovery_end(struct discovery *d, struct allocator_call call, int result)
{
    if (result == 0) {
        closure_release(d);
        d->freed_ever += d->freed;
        discovery_drop_root(d);
    } else {
        if (d->root_redirected)
            allocator_set_root(d->a, d->old_root, d->old_root_size);
        closure_undo(d);
        allocator_undo_call(d->a, call);
    }
    d->root_redirected = false;
    forget(d);
}

void discovery_rolled_back(struct discovery *d)
{
    discovery_drop_root(d);
    if (exclusions_any())
        exclusions_restore(d->a);
}

int discovery_set_root(struct discovery *d, void *object, size_t size)
{
    struct heap_object found;
    if (heap_find(object, &found) != HEAP_LIVE || found.start != object || size > found.size)
        return pm__fail(EINVAL,
                        "%s: the root %p of %zu bytes is not the start of a malloc'ed object of "
                        "that size",
                        path_of(d), object, size);
    take_root(d, object, size);
    return 0;
}

void discovery_move_root(const void *object, void *to, size_t size)
{
    if (atomic_load_explicit(&roots, memory_order_relaxed) == 0)
        return;
    lock_acquire(&list_lock);
    for (struct discovery *d = first; d; d = d->next)
        if (d->root == object && !to) {
            d->root_freed = true;
        } else if (d->root == object && !d->root_freed) {
            d->root = to;
            d->root_size = min_u64(d->root_size, size);
        }
    lock_release(&list_lock);
}
