/*
 * Dynamic memory of code compiled by `pmcc --discover`. It comes from the volatile heap, or from the
 * thread's current container (pm_set_current()). Such code may free or resize memory from either; and
 * memory from libc, if foreign code has allocated it.
 */
#define _GNU_SOURCE
#include "runtime/heap.h"

#include "api/api.h"
#include "base/cancel.h"
#include "base/panic.h"
#include "discovery/discovery.h"
#include "discovery/exclusions.h"
#include "discovery/heap.h"
#include "pages/fault.h"
#include "runtime/announce.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* True if this thread allocates in its current container. In a child of fork(2) there are no containers. */
static bool is_into_container(void)
{
    return api_current && !fault_in_child();
}

/* Return the memory that a container has given. If it is NULL, errno is ENOMEM, the only reason that
 * malloc(3) knows. */
static void *given(void *p)
{
    if (!p)
        errno = ENOMEM;
    return p;
}

static void *from_container(size_t alignment, size_t size)
{
    return given(pm_aligned_alloc(api_current, alignment, size));
}

void *pm__malloc(size_t size)
{
    DEFER_CANCELLATION;
    return is_into_container() ? from_container(HEAP_GRANULE, size) : heap_allocate(size);
}

void *pm__calloc(size_t count, size_t size)
{
    DEFER_CANCELLATION;
    if (is_into_container())
        return given(pm_calloc(api_current, count, size));
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return heap_allocate(bytes);
}

/* Like glibc, it rounds the alignment up to a power of two. */
void *pm__memalign(size_t alignment, size_t size)
{
    DEFER_CANCELLATION;
    if (alignment > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    size_t power = HEAP_GRANULE;
    while (power < alignment)
        power *= 2;
    return is_into_container() ? from_container(power, size) : heap_allocate_aligned(power, size);
}

void *pm__aligned_alloc(size_t alignment, size_t size)
{
    return pm__memalign(alignment, size);
}

int pm__posix_memalign(void **result, size_t alignment, size_t size)
{
    DEFER_CANCELLATION;
    int saved = errno;
    if (alignment % sizeof(void *) != 0 || !is_power_of_two(alignment))
        return EINVAL;
    void *p = pm__memalign(alignment, size);
    errno = saved;
    if (!p)
        return ENOMEM;
    announce_copy(result, &p, sizeof p);
    *result = p;
    return 0;
}

static bool is_in_container(const void *p)
{
    return in_arena(p) && !heap_contains(p);
}

/* The size that an object of the heap was allocated with. */
static size_t heap_size(void *p, const char *call)
{
    struct heap_object object = {.size = 0};
    if (heap_find(p, &object) != HEAP_LIVE || object.start != p)
        panic_address(call, p, HEAP_NO_OBJECT);
    return object.size;
}

/* Leaves errno alone, like libc's free(). */
void pm__free(void *p)
{
    DEFER_CANCELLATION;
    int saved = errno;
    if (heap_contains(p)) {
        if (exclusions_any())
            exclusions_move(p, heap_size(p, "free()"), NULL);
        discovery_move_root(p, NULL, 0);
        heap_free(p);
    } else if (in_arena(p)) {
        if (pm_free(p) != 0)
            panic_address("free()", p, pm_errormsg());
    } else {
        free(p);
    }
    errno = saved;
}

/* If an object was to become the root, its copy is. In the current container it is the root at once. If that
 * fails, free() comes next, and the commit fails. */
static void move_root(const void *from, void *to, size_t size)
{
    if (heap_contains(to))
        discovery_move_root(from, to, size);
    else if (api_current->discovery.root == from)
        (void)pm_setroot(api_current, to, min_u64(api_current->discovery.root_size, size));
}

void *pm__realloc(void *p, size_t size)
{
    DEFER_CANCELLATION;
    if (!p)
        return pm__malloc(size);
    if (size == 0) { /* like glibc */
        pm__free(p);
        return NULL;
    }
    if (is_in_container(p))
        return given(pm_realloc(p, size));
    if (!heap_contains(p))
        return realloc(p, size);
    size_t bytes = min_u64(heap_size(p, "realloc()"), size);
    void *moved = pm__malloc(size);
    if (moved) {
        size_t whole = align_down(bytes, sizeof(void *)); /* a part of a word is data */
        announce_copy(moved, p, whole);
        announce((char *)moved + whole, bytes - whole);
        memcpy(moved, p, bytes);
        exclusions_move(p, bytes, moved);
        move_root(p, moved, size);
        pm__free(p);
    }
    return moved;
}

void *pm__reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return pm__realloc(p, bytes);
}

size_t pm__malloc_usable_size(void *p)
{
    DEFER_CANCELLATION;
    if (heap_contains(p))
        return heap_size(p, "malloc_usable_size()");
    return is_in_container(p) ? pm_usable_size(p) : malloc_usable_size(p);
}
