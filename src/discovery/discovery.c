#define _GNU_SOURCE
#include "discovery/discovery.h"

#include "base/error.h"
#include "discovery/check.h"
#include "discovery/closure.h"
#include "discovery/exclusions.h"
#include "discovery/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

static struct lock list_lock;   /* guards the list */
static struct discovery *first; /* list of all open containers that discover */

/* For pointer_map: true for an excluded field, or if the next commit moves the field's target. */
static bool leads_out_until_commit(const uint64_t *word)
{
    struct heap_object object;
    return exclusions_have(word) ||
           (heap_contains((void *)*word) && heap_find((void *)*word, &object) == HEAP_LIVE);
}

void discovery_open(struct discovery *d, struct pointer_map *map, bool vouched, bool refuse_freed)
{
    map->leads_out_until_commit = leads_out_until_commit;
    lock_acquire(&list_lock);
    *d = (struct discovery){
        .map = map, .vouched = vouched, .refuse_freed = refuse_freed, .next = first};
    first = d;
    lock_release(&list_lock);
}

void discovery_close(struct discovery *d)
{
    if (!d->map)
        return;
    exclusions_forget(d->map->a->c);
    lock_acquire(&list_lock);
    struct discovery **link = &first;
    while (*link != d)
        link = &(*link)->next;
    *link = d->next;
    lock_release(&list_lock);
    vector_free(&d->words);
    vector_free(&d->moves);
    vector_free(&d->changes);
    d->map = NULL;
}

static const char *path_of(const struct discovery *d)
{
    return d->map->a->c->path;
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
    return txn_find_pointers(other->map->a->t, VOLATILE_BASE, VOLATILE_SIZE, find_shared,
                             other->map->a->c);
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
    if (exclusions_any() && exclusions_have((uint64_t *)(d->map->a->c->base + offset)))
        return 0;
    uint64_t *word = vector_push(&d->words, sizeof *word);
    if (!word)
        return pm__fail(ENOMEM, "%s: no memory to note what leads out of it", path_of(d));
    *word = offset;
    return 0;
}

static int commit_hiding(struct discovery *d, uint64_t *epoch)
{
    struct allocator *a = d->map->a;
    if (!exclusions_any())
        return allocator_commit(a, epoch);
    exclusions_hide(a->t);
    int result = allocator_commit(a, epoch);
    exclusions_show(a->t, result == 0);
    return result;
}

/* Commit. If the new root moves, set the container's root to its copy for this commit. */
static int commit_root(struct discovery *d, uint64_t *epoch)
{
    struct allocator *a = d->map->a;
    struct heap_object object;
    if (!heap_find_moving(d->root, &object))
        return commit_hiding(d, epoch);
    uint64_t size;
    void *old = allocator_root_object(a, &size);
    if (allocator_set_root(a, (void *)moved_value(d, (uint64_t)d->root, &object), d->root_size) !=
        0)
        return -1;
    int result = commit_hiding(d, epoch);
    if (result != 0)
        allocator_set_root(a, old, size);
    return result;
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

/* The registers of the program's functions are saved in this frame, and restored from here. So the frame
 * must exist when the stack is redirected, and when it is put back. */
static __attribute__((noinline)) int move_and_commit(struct discovery *d,
                                                     struct frame program, uint64_t *epoch)
{
    struct roots_range stack;
    struct allocator_call call = allocator_begin_call(d->map->a);
    __builtin_unwind_init();
    int result = closure_gather(d);
    if (result == 0 && d->moves.count > 0) {
        result = check_alone(d, program, &stack);
        if (result == 0)
            result = check_others(d);
        if (result == 0) {
            __asm__ volatile("mov %%rsp, %0" : "=r"(stack.first));
            result = closure_redirect(d, &stack);
        }
    }
    if (result == 0)
        result = commit_root(d, epoch);
    if (result == 0) {
        closure_release(d);
        d->freed_ever += d->freed;
        d->root = NULL;
    } else {
        closure_undo(d);
        allocator_undo_call(d->map->a, call);
    }
    forget(d);
    return result;
}

int discovery_commit(struct discovery *d, struct frame program, uint64_t *epoch)
{
    if (txn_find_pointers(d->map->a->t, VOLATILE_BASE, VOLATILE_SIZE, note_word, d) != 0) {
        forget(d);
        return -1;
    }
    if (d->words.count == 0 && !d->root)
        return commit_hiding(d, epoch);
    /* A signal handler of the program must see all objects at their old place, or all at their new one. */
    sigset_t all, saved;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* opens pages */
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    int result = move_and_commit(d, program, epoch);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return result;
}

void discovery_rolled_back(struct discovery *d)
{
    d->root = NULL;
    if (exclusions_any())
        exclusions_restore(d->map->a);
}

int discovery_set_root(struct discovery *d, void *object, size_t size)
{
    struct heap_object found;
    if (heap_find(object, &found) != HEAP_LIVE || found.start != object || size > found.size)
        return pm__fail(EINVAL,
                        "%s: the root %p of %zu bytes is not the start of a malloc'ed object of "
                        "that size",
                        path_of(d), object, size);
    d->root = object;
    d->root_size = size;
    return 0;
}
