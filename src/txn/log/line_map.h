/*
 * The map as a table: what is known of each line of the container. deltas.h says what an entry means.
 *
 * Lines that are stored together lie together in the file. So there is a word for each group of lines. If all
 * of them lie one behind the other, it says where, and they need no entries. A value of a kilobyte takes four
 * bytes then, and not 64. Other groups have a block of entries, of a pool.
 *
 *   groups   │ 0            │ no line has a piece
 *            │ 5000         │ line i lies at 5000 + i
 *            │ SPLIT, block │ ──► blocks │ an entry for each line │
 *
 * A group is split when an entry of it changes. If all its lines change at once, its word does
 * (line_map_set_group()). When the last lines of a block may have been stored or dropped, it is looked at
 * again (line_map_settle()). So each block has a line with a piece, but while entries change.
 *
 * Unused blocks are a list, which ends with the number `known`. That grows only when the list is empty.
 */
#ifndef PM_TXN_LOG_LINE_MAP_H
#define PM_TXN_LOG_LINE_MAP_H

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

#define LINE_MAP_GROUP  UINT64_C(16)
#define LINE_MAP_UNUSED UINT32_MAX
#define LINE_MAP_SPLIT  (UINT32_C(1) << 31)

/* An entry is 0, the line of the file where the line is, or has this bit: the line has a delta. */
#define LOG_HAS_DELTA (UINT32_C(1) << 31)

struct line_block {
    uint32_t entries[LINE_MAP_GROUP]; /* unused: the first one says which block is the next */
};

struct line_map {
    uint32_t *groups;
    uint64_t count;            /* of groups */
    struct line_block *blocks; /* room for one for each group */
    uint32_t *owners;          /* the group of each block; LINE_MAP_UNUSED */
    uint32_t used, known;      /* blocks: so many are in use, and the first ones have been */
    uint32_t unused;           /* the first of the list */
};

static inline struct line_block *line_map_block(const struct line_map *m, uint32_t group)
{
    return &m->blocks[group & ~LINE_MAP_SPLIT];
}

static inline uint32_t line_map_at(const struct line_map *m, uint64_t line)
{
    const uint32_t group = m->groups[line / LINE_MAP_GROUP], i = line % LINE_MAP_GROUP;
    if (group & LINE_MAP_SPLIT)
        return line_map_block(m, group)->entries[i];
    return group == 0 ? 0 : group + i;
}

static inline void line_map_split(struct line_map *m, uint64_t group)
{
    const uint32_t place = m->groups[group], block = m->unused;
    uint32_t *entries = m->blocks[block].entries;
    m->unused = block == m->known ? ++m->known : entries[0];
    m->used++;
    for (uint32_t i = 0; i < LINE_MAP_GROUP; i++)
        entries[i] = place == 0 ? 0 : place + i;
    m->owners[block] = (uint32_t)group;
    m->groups[group] = LINE_MAP_SPLIT | block;
}

/* The entry of a line, to be changed. */
static inline uint32_t *line_map_entry(struct line_map *m, uint64_t line)
{
    const uint32_t *group = &m->groups[line / LINE_MAP_GROUP];
    if (!(*group & LINE_MAP_SPLIT))
        line_map_split(m, line / LINE_MAP_GROUP);
    return &line_map_block(m, *group)->entries[line % LINE_MAP_GROUP];
}

/* Let a group be no block, but a word. */
static inline void line_map_set_group(struct line_map *m, uint32_t *group, uint32_t place)
{
    if (*group & LINE_MAP_SPLIT) {
        line_map_block(m, *group)->entries[0] = m->unused;
        m->unused = *group & ~LINE_MAP_SPLIT;
        m->owners[m->unused] = LINE_MAP_UNUSED;
        m->used--;
    }
    *group = place;
}

/* Whether a word says as much as a block: no line has a piece, or all lie one behind the other. */
static inline bool line_map_is_simple(const struct line_block *block)
{
    const uint32_t first = block->entries[0], step = first == 0 ? 0 : 1;
    uint32_t differ = first & LOG_HAS_DELTA;
    for (uint32_t i = 0; i < LINE_MAP_GROUP; i++)
        differ |= block->entries[i] ^ (first + step * i);
    return differ == 0;
}

/* Entries of these lines have changed: give back the blocks of which a word says as much now. */
static inline void line_map_settle(struct line_map *m, uint64_t line, uint64_t count)
{
    uint32_t *group = &m->groups[line / LINE_MAP_GROUP],
             *last = &m->groups[(line + count - 1) / LINE_MAP_GROUP];
    for (; group <= last; group++)
        if ((*group & LINE_MAP_SPLIT) && line_map_is_simple(line_map_block(m, *group)))
            line_map_set_group(m, group, line_map_block(m, *group)->entries[0]);
}

/* The same, if only the first and the last of these groups can be such blocks. */
static inline void line_map_settle_ends(struct line_map *m, uint64_t line, uint64_t count)
{
    line_map_settle(m, line, 1);
    line_map_settle(m, line + count - 1, 1);
}

/* Whether a whole group begins with `line`, and ends before `end`. */
static inline bool line_map_is_group(uint64_t line, uint64_t end)
{
    return line % LINE_MAP_GROUP == 0 && end - line >= LINE_MAP_GROUP;
}

/* Let lines of whole groups have no pieces. */
static inline void line_map_clear(struct line_map *m, uint64_t line, uint64_t count)
{
    for (uint64_t g = line / LINE_MAP_GROUP, end = (line + count) / LINE_MAP_GROUP; g < end; g++)
        line_map_set_group(m, &m->groups[g], 0);
}

/* The same, and give back pages of groups that say nothing. */
void line_map_leave(struct line_map *m, uint64_t line, uint64_t count);

/* If most blocks are unused, let those in use be the first ones, and give back the memory of the others. It
 * takes as long as it took to split or join so many groups. Nobody holds an entry. */
void line_map_trim(struct line_map *m);

/* How many lines, from this one on, lie one behind the other, as wholes; not more than `most`. */
static inline uint64_t line_map_together(const struct line_map *m, uint64_t line, uint64_t most)
{
    const uint32_t place = line_map_at(m, line);
    uint64_t n = 0;
    if (place == 0 || (place & LOG_HAS_DELTA))
        return 0;
    while (n < most && line_map_at(m, line + n) == place + n) {
        const uint64_t rest = LINE_MAP_GROUP - (line + n) % LINE_MAP_GROUP;
        n += m->groups[(line + n) / LINE_MAP_GROUP] & LINE_MAP_SPLIT ? 1 : rest;
    }
    return min_u64(n, most);
}

/* Somebody will soon call line_map_fetch() for a line, and then ask for it, or set it. */
static inline void line_map_fetch_group(const struct line_map *m, uint64_t line)
{
    __builtin_prefetch(&m->groups[line / LINE_MAP_GROUP]);
}

static inline void line_map_fetch(const struct line_map *m, uint64_t line)
{
    const uint32_t group = m->groups[line / LINE_MAP_GROUP];
    if (group & LINE_MAP_SPLIT)
        __builtin_prefetch(line_map_block(m, group));
}

#endif
