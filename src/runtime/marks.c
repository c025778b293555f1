/* The slow paths of marks: which container, and on to its transaction. mark_entry.S calls these. */
#include "container/container.h"
#include "txn/txn.h"

void runtime_mark(const void *address);
void runtime_mark_range(const void *address, size_t size);

void runtime_mark(const void *address)
{
    struct container *c = arena_find(address);
    if (c && c->upper && container_holds(c, address))
        txn_mark(c->upper, (uint64_t)((const char *)address - c->base) / PM_LINE);
}

void runtime_mark_range(const void *address, size_t size)
{
    struct container *c = arena_find(address);
    if (!c || !c->upper || size == 0 || !container_holds(c, address))
        return;
    uint64_t offset = (uint64_t)((const char *)address - c->base);
    txn_mark_range(c->upper, offset, min_u64(size, c->max_size - offset));
}
