/* The slow paths of marks: which container, and on to its transaction. */
#include "base/marks.h"

#include "container/container.h"
#include "txn/txn.h"

void pm__mark(const void *address)
{
    struct container *c = arena_find(address);
    if (c && c->upper && container_holds(c, address))
        txn_mark(c->upper, (uint64_t)((const char *)address - c->base) / PM_LINE);
}

void pm__mark_range(const void *address, size_t size)
{
    struct container *c = arena_base && arena_contains(address) ? arena_find(address) : NULL;
    if (!c || !c->upper || size == 0 || !container_holds(c, address))
        return;
    struct txn *t = c->upper;
    uint64_t offset = (uint64_t)((const char *)address - c->base);
    size = min_u64(size, c->max_size - offset);
    txn_mark_range(t, offset, size);
}
