/*
 * A line map gives memory back. A page of groups goes when none of their lines has a piece. Blocks go when
 * most of them are unused.
 */
#include "txn/log/line_map.h"

#include "backend/backend.h"

/* Blocks that may be there for nothing. */
#define TRIM_MIN (UINT32_C(1) << 14)
/* They go when so few are in use. */
#define TRIM_SHARE 4
#define PAGE_GROUPS (PM_PAGE / sizeof(uint32_t))

void line_map_leave(struct line_map *m, uint64_t line, uint64_t count)
{
    /* Tables have whole pages. */
    uint32_t *page = m->groups + align_down(line / LINE_MAP_GROUP, PAGE_GROUPS);
    line_map_clear(m, line, count);
    for (uint64_t i = 0; i < PAGE_GROUPS; i++)
        if (page[i] != 0)
            return;
    (void)map_clear_table(page, PM_PAGE); /* if that fails, the memory stays */
}

static void clear_behind(void *table, uint64_t from, uint64_t end)
{
    char *first = (char *)table + align_up(from, PM_PAGE),
         *last = (char *)table + align_up(end, PM_PAGE);
    if (first < last)
        (void)map_clear_table(first, (size_t)(last - first)); /* likewise */
}

/* Behind the first `used` blocks as many are in use as are unused among them. */
static void move_blocks(struct line_map *m)
{
    for (uint32_t block = m->used, to = 0; block < m->known; block++) {
        if (m->owners[block] == LINE_MAP_UNUSED)
            continue;
        while (m->owners[to] != LINE_MAP_UNUSED)
            to++;
        m->blocks[to] = m->blocks[block];
        m->owners[to] = m->owners[block];
        m->groups[m->owners[to]] = LINE_MAP_SPLIT | to;
    }
}

void line_map_trim(struct line_map *m)
{
    if (m->known - m->used < TRIM_MIN || m->used >= m->known / TRIM_SHARE)
        return;
    move_blocks(m);
    clear_behind(m->blocks, m->used * sizeof *m->blocks, m->known * sizeof *m->blocks);
    clear_behind(m->owners, m->used * sizeof *m->owners, m->known * sizeof *m->owners);
    m->known = m->unused = m->used;
}
