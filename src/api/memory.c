/*
 * Allocation. The allocator does the work, and changes only the shadow. pm_calloc() and pm_realloc() also
 * store into the view. libpm's own code has no marks. So they announce these stores. A call that fails gives
 * back all that it has taken.
 *
 * Each call holds the allocator's lock from its first step to its last. If the lock were free in between,
 * another thread's commit could end the transaction for which the stores are announced. Or its rollback could
 * take the new object back, and the stores would go to whoever has the memory next.
 */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "discovery/exclusions.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void *allocate(pm_container *c, size_t size, size_t alignment)
{
    return api_enter_writing(c) == 0 ? allocator_allocate(&c->allocator, size, alignment) : NULL;
}

/* Announce libpm's own stores into the view: this file is not compiled with pmcc. If a store cannot be
 * logged, the call fails; as a fault it would end the process. The handler does not take the allocator's
 * lock. */
static int announce(pm_container *c, void *p, size_t bytes)
{
    int error = track_dirty(&c->txn, (uint64_t)((char *)p - c->container.base), bytes);
    return error == 0
               ? 0
               : container_fail(&c->container, -error, "%s: cannot open the pages of a new object",
                                c->container.path);
}

/* The same for loads. */
static int touch(pm_container *c, const void *from, size_t bytes)
{
    int error = txn_touch(&c->txn, (uint64_t)((const char *)from - c->container.base), bytes);
    return error == 0 ? 0
                      : pm__fail_system(-error, "%s: cannot open the pages of an object",
                                        c->container.path);
}

void *api_give_back(pm_container *c, void *p, struct allocator_call call)
{
    int error = errno;
    allocator_free_locked(&c->allocator, p);
    allocator_undo_locked(&c->allocator, call);
    errno = error;
    return NULL;
}

void *pm_malloc(pm_container *c, size_t size)
{
    DEFER_CANCELLATION;
    return allocate(c, size, FORMAT_GRANULARITY_MIN);
}

void *api_calloc(pm_container *c, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX; /* fails like any other size that does not fit */
    bytes = max_u64(bytes, 1);
    struct allocator_call call = allocator_begin_call(&c->allocator);
    void *p = allocator_allocate_locked(&c->allocator, bytes, FORMAT_GRANULARITY_MIN);
    if (!p)
        return NULL;
    if (announce(c, p, bytes) != 0)
        return api_give_back(c, p, call);
    return memset(p, 0, bytes);
}

void *pm_calloc(pm_container *c, size_t count, size_t size)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0)
        return NULL;
    lock_acquire(&c->allocator.lock);
    void *p = api_calloc(c, count, size);
    lock_release(&c->allocator.lock);
    return p;
}

void *pm_aligned_alloc(pm_container *c, size_t alignment, size_t size)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0)
        return NULL;
    if (!is_power_of_two(alignment) || alignment > c->container.segment_size)
        return pm__fail_null(
            EINVAL, "%s: alignment %zu is not a power of two up to the segment size %" PRIu64,
            c->container.path, alignment, c->container.segment_size);
    return allocate(c, size, alignment);
}

/* Give the new object pointers where the old one has pointers. They are in the map at once, except for
 * pointers that only a commit maps. Of the last word there may be only a part, which is data. */
static int copy_pointers(pm_container *c, void *to, const void *from, size_t bytes)
{
    const char *base = c->container.base;
    uint64_t offset = (uint64_t)((char *)to - base);
    int result = pointers_copy(&c->allocator, offset, (uint64_t)((const char *)from - base), bytes);
    uint64_t whole = align_down(bytes, sizeof(void *));
    track_copy_kinds(&c->txn, offset, from, whole);
    if (whole < bytes)
        track_set_kind(&c->txn, offset + whole, sizeof(void *), KIND_DATA);
    return result;
}

static int copy(pm_container *c, void *to, const void *from, size_t bytes)
{
    int result = announce(c, to, bytes);
    if (result == 0)
        result = touch(c, from, bytes);
    if (result == 0) {
        memcpy(to, from, bytes);
        result = copy_pointers(c, to, from, bytes);
    }
    return result;
}

static void *reallocate(pm_container *c, void *ptr, size_t size)
{
    size_t old = allocator_usable(&c->allocator, ptr);
    if (old == 0)
        return NULL;
    size = max_u64(size, 1);
    if (size <= old && size > old / 2)
        return ptr; /* the room that a smaller object would save is not worth a copy */
    struct allocator_call call = allocator_begin_call(&c->allocator);
    void *p = allocator_allocate_locked(&c->allocator, size, FORMAT_GRANULARITY_MIN);
    if (!p)
        return size <= old ? ptr : NULL; /* there is no room to become smaller: stay */
    if (copy(c, p, ptr, min_u64(old, size)) != 0)
        return api_give_back(c, p, call);
    allocator_replace_root(&c->allocator, ptr, p);
    exclusions_move(ptr, min_u64(old, size), p);
    exclusions_move(ptr, old, NULL);
    allocator_free_locked(&c->allocator, ptr);
    return p;
}

void *pm_realloc(void *ptr, size_t size)
{
    DEFER_CANCELLATION;
    pm_container *c = owner_of(ptr);
    if (!c || api_enter_writing(c) != 0)
        return NULL;
    lock_acquire(&c->allocator.lock);
    void *p = reallocate(c, ptr, size);
    lock_release(&c->allocator.lock);
    return p;
}

int pm_free(void *ptr)
{
    DEFER_CANCELLATION;
    if (!ptr)
        return 0;
    pm_container *c = owner_of(ptr);
    if (!c || api_enter_writing(c) != 0)
        return -1;
    lock_acquire(&c->allocator.lock);
    if (exclusions_any()) /* before another thread may have the memory */
        exclusions_move(ptr, allocator_usable(&c->allocator, ptr), NULL);
    int result = allocator_free_locked(&c->allocator, ptr);
    lock_release(&c->allocator.lock);
    return result;
}

size_t pm_usable_size(const void *ptr)
{
    DEFER_CANCELLATION;
    pm_container *c = owner_of(ptr);
    if (!c)
        return 0;
    lock_acquire(&c->allocator.lock);
    size_t size = allocator_usable(&c->allocator, ptr);
    lock_release(&c->allocator.lock);
    return size;
}

bool pm_contains(const pm_container *c, const void *ptr)
{
    const struct container *in = c ? &c->container : arena_find(ptr);
    return in && container_holds(in, ptr);
}

int pm_reserve(pm_container *c, size_t bytes)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0)
        return -1;
    lock_acquire(&c->allocator.lock);
    struct allocator_call call = allocator_begin_call(&c->allocator);
    /* The commit may need maps for the pointers that the program stores meanwhile. */
    int result = c->txn.tracker.kinds ? pointers_make_all_maps(&c->allocator) : 0;
    if (result == 0)
        result = allocator_reserve(&c->allocator, bytes);
    if (result != 0)
        allocator_undo_locked(&c->allocator, call);
    lock_release(&c->allocator.lock);
    return result;
}
