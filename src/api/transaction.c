/* Commit, rollback, announcing stores, the root. */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "discovery/heap.h"
#include "txn/fault.h"

#include <errno.h>
#include <string.h>

/* Each commit checks that libpm's signal handler is still installed. Where stores rarely fault, only one
 * commit in CHECK_EVERY checks: the check would take most of the commit's time. */
static int check_handler(pm_container *c)
{
    enum { CHECK_EVERY = 64 };
    bool skip = c->txn.stores && counted(&c->txn.commits) % CHECK_EVERY != 0;
    return skip ? 0 : fault_install(c->container.path);
}

static int commit(pm_container *c, struct frame program, uint64_t *epoch)
{
    if (api_enter_writing(c) != 0 || check_handler(c) != 0 ||
        (name_is_due(&c->container.name) && name_check(&c->container) != 0))
        return -1;
    return api_discovers(c) ? discovery_commit(&c->discovery, program, epoch)
                            : allocator_commit(&c->allocator, epoch);
}

int api_commit(pm_container *c, struct frame program)
{
    DEFER_CANCELLATION;
    uint64_t epoch;
    return commit(c, program, &epoch) == 0 ? txn_wait(&c->txn, epoch) : -1;
}

ROOTS_ENTRY int pm_commit(pm_container *c)
{
    return api_commit(c, roots_caller());
}

ROOTS_ENTRY pm_ticket pm_commit_async(pm_container *c)
{
    DEFER_CANCELLATION;
    uint64_t epoch;
    return commit(c, roots_caller(), &epoch) == 0 ? (pm_ticket){c, epoch} : (pm_ticket){NULL, 0};
}

int pm_wait(pm_ticket ticket)
{
    DEFER_CANCELLATION;
    if (!ticket.container)
        return pm__fail(EINVAL, "a ticket of a commit that failed");
    return api_enter(ticket.container) == 0 ? txn_wait(&ticket.container->txn, ticket.epoch) : -1;
}

int pm_rollback(pm_container *c)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0 || allocator_rollback(&c->allocator) != 0)
        return -1;
    if (api_discovers(c))
        discovery_rolled_back(&c->discovery);
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
    uint64_t offset = (uint64_t)((const char *)ptr - c->container.base);
    if (len > c->container.max_size - offset)
        return pm__fail_at(c->container.path, offset, EINVAL,
                           "%zu bytes reach beyond the container", len);
    uint32_t first = (uint32_t)(offset >> PM_PAGE_SHIFT);
    uint32_t last = (uint32_t)((offset + len - 1) >> PM_PAGE_SHIFT);
    for (uint32_t page = first; page <= last; page++)
        if (!segments_page_is_data(&c->txn, page))
            return pm__fail_at(c->container.path, (uint64_t)page << PM_PAGE_SHIFT, EINVAL,
                               "not in an allocated object");
    int error = txn_dirty(&c->txn, offset, len);
    if (error != 0)
        return container_fail_at(&c->container, offset, -error,
                                 "cannot log or open %u pages for stores", last - first + 1);
    txn_mark_foreign(&c->txn, offset, len);
    return 0;
}

int pm_setroot(pm_container *c, void *ptr, size_t size)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0)
        return -1;
    if (api_discovers(c) && heap_contains(ptr))
        return discovery_set_root(&c->discovery, ptr, size);
    if (ptr && !container_holds(&c->container, ptr))
        return pm__fail(EINVAL, "%s: the root %p is not in this container%s", c->container.path,
                        ptr, heap_contains(ptr) ? ", which was opened without PM_DISCOVER" : "");
    if (allocator_set_root(&c->allocator, ptr, size) != 0)
        return -1;
    c->discovery.root = NULL;
    return 0;
}

void *pm_getroot(pm_container *c)
{
    DEFER_CANCELLATION;
    if (api_enter(c) != 0)
        return NULL;
    return c->discovery.root ? c->discovery.root : allocator_root(&c->allocator);
}
