/*
 * The volatile tables of an open container. Most have an entry for each page, line or segment that the
 * container may ever have, and few tables are much in use. They are pieces of one mapping. Mapping and
 * unmapping each by itself was a third of the cost of opening a small container.
 */
#include "backend/backend.h"

#include "base/bits.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

int tables_open(struct tables *tables, size_t size)
{
    void *p = map_table(size);
    if (p == MAP_FAILED)
        return -errno;
    *tables = (struct tables){.start = p, .size = size};
    return 0;
}

void *tables_take(struct tables *tables, size_t size)
{
    void *table = tables->start + tables->taken;
    tables->taken += align_up(size, PM_PAGE);
    assert(tables->taken <= tables->size);
    return table;
}

void tables_close(struct tables *tables)
{
    if (tables->start)
        munmap(tables->start, tables->size);
    *tables = (struct tables){.start = NULL};
}
