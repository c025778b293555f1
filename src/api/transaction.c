/* Rollback, announcing stores, the root. Commit is in commit.c. */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "discovery/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int rollback_discovering(pm_container *c)
{
    discovery_enter();
    int result = allocator_rollback(&c->allocator);
    if (result == 0)
        discovery_rolled_back(&c->discovery);
    discovery_leave();
    return result;
}

int pm_rollback(pm_container *c)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0)
        return -1;
    return api_discovers(c) ? rollback_discovering(c) : allocator_rollback(&c->allocator);
}

/* Under `stores` the caller holds the allocator's lock. Otherwise another thread's commit might clear the
 * list of marks between a line's entry and its byte (T1). No later store to the line would be seen. */
int api_announce(pm_container *c, uint64_t offset, uint64_t bytes)
{
    int error = track_dirty(&c->txn, offset, bytes);
    if (error == 0)
        track_mark_foreign(&c->txn, offset, bytes);
    return error;
}

/* 0 if the range is in memory that has been allocated for data; else EINVAL: -1 with a message. */
static int check_data(const pm_container *c, const void *ptr, size_t bytes)
{
    uint64_t offset = (uint64_t)((const char *)ptr - c->container.base);
    if (bytes > c->container.max_size - offset)
        return pm__fail_at(c->container.path, offset, EINVAL,
                           "%zu bytes reach beyond the container", bytes);
    for (uint64_t page = offset >> PM_PAGE_SHIFT; page << PM_PAGE_SHIFT < offset + bytes; page++)
        if (!segments_page_is_data(&c->txn, (uint32_t)page))
            return pm__fail_at(c->container.path, page << PM_PAGE_SHIFT, EINVAL,
                               "not in an allocated object");
    return 0;
}

int pm_dirty(const void *ptr, size_t len)
{
    DEFER_CANCELLATION;
    pm_container *c = owner_of(ptr);
    if (!c || api_enter_writing(c) != 0)
        return -1;
    if (len == 0)
        return 0;
    if (check_data(c, ptr, len) != 0)
        return -1;
    uint64_t offset = (uint64_t)((const char *)ptr - c->container.base);
    uint64_t pages = divide_up(offset + len, PM_PAGE) - (offset >> PM_PAGE_SHIFT);
    bool marks = c->txn.tracker.stores;
    if (marks)
        lock_acquire(&c->allocator.lock);
    int error = api_announce(c, offset, len);
    if (marks)
        lock_release(&c->allocator.lock);
    return error == 0 ? 0
                      : container_fail_at(&c->container, offset, -error,
                                          "cannot log or open %" PRIu64 " pages for stores", pages);
}

static int set_root(pm_container *c, void *ptr, size_t size)
{
    if (ptr && !container_holds(&c->container, ptr))
        return pm__fail(EINVAL, "%s: the root %p is not in this container%s", c->container.path,
                        ptr, heap_contains(ptr) ? ", which was opened without PM_DISCOVER" : "");
    return allocator_set_root(&c->allocator, ptr, size);
}

/* A commit beside this call takes the root that was there before it, or the new one. */
static int set_root_discovering(pm_container *c, void *ptr, size_t size)
{
    int result;
    discovery_enter();
    if (heap_contains(ptr)) {
        result = discovery_set_root(&c->discovery, ptr, size);
    } else {
        result = set_root(c, ptr, size);
        if (result == 0)
            discovery_drop_root(&c->discovery);
    }
    discovery_leave();
    return result;
}

int pm_setroot(pm_container *c, void *ptr, size_t size)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0)
        return -1;
    if (api_discovers(c))
        return set_root_discovering(c, ptr, size);
    return set_root(c, ptr, size);
}

void *pm_getroot(pm_container *c)
{
    DEFER_CANCELLATION;
    if (api_enter(c) != 0)
        return NULL;
    return c->discovery.root ? c->discovery.root : allocator_root(&c->allocator);
}
