/*
 * The volatile tables of an open container: most have an entry for each of its pages, lines or
 * segments that may ever be, and of few is much in use. They are pieces of one mapping, for to map
 * and unmap each by itself was a third of what opening a small container cost.
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
