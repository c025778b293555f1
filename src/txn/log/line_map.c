/*
 * A line map gives memory back. Groups do when no line of a whole page of them has a piece. Blocks do when
 * most of the pool is unused: those in use move to its beginning.
 */
#include "txn/log/line_map.h"

#include "backend/backend.h"

/* Blocks that the pool may have for nothing. */
#define TRIM_MIN (UINT32_C(1) << 14)
/* It becomes smaller when so few of them are in use. */
#define TRIM_SHARE 4
#define PAGE_GROUPS (PM_PAGE / sizeof(uint32_t))

static void give_back_groups(struct line_map *m, uint64_t group)
{
    uint32_t *page = m->groups + align_down(group, PAGE_GROUPS);
    for (uint64_t i = 0; i < PAGE_GROUPS; i++)
        if (page[i] != 0)
            return;
    (void)map_clear_table(page, PM_PAGE); /* if that fails, the memory stays */
}

/* Let the list of unused blocks have only those in front of block `end`. */
static uint32_t unused_before(const struct line_map *m, uint32_t end)
{
    uint32_t list = m->known;
    for (uint32_t block = m->unused, next; block != m->known; block = next) {
        next = m->blocks[block].entries[0];
        if (block < end) {
            m->blocks[block].entries[0] = list;
            list = block;
        }
    }
    return list;
}

static void trim(struct line_map *m)
{
    const uint32_t used = m->used;
    uint32_t unused = unused_before(m, used);
    for (uint64_t g = 0; g < m->count; g++) {
        const uint32_t block = m->groups[g] & ~LINE_MAP_SPLIT;
        if (!(m->groups[g] & LINE_MAP_SPLIT) || block < used)
            continue;
        m->groups[g] = LINE_MAP_SPLIT | unused;
        const uint32_t to = unused;
        unused = m->blocks[to].entries[0];
        m->blocks[to] = m->blocks[block];
    }
    char *end = (char *)align_up((uint64_t)(uintptr_t)(m->blocks + used), PM_PAGE);
    char *was = (char *)align_up((uint64_t)(uintptr_t)(m->blocks + m->known), PM_PAGE);
    (void)map_clear_table(end, (size_t)(was - end));
    m->known = m->unused = used;
}

void line_map_leave(struct line_map *m, uint64_t line, uint64_t count)
{
    line_map_clear(m, line, count);
    give_back_groups(m, line / LINE_MAP_GROUP);
    if (m->known - m->used >= TRIM_MIN && m->used < m->known / TRIM_SHARE)
        trim(m);
}
