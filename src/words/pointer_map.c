/* Walks over the bits of the pointer map. */
#include "words/pointer_map.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>

static_assert(MAP_GROUP_SEGMENTS * sizeof(uint64_t) == MAP_WORD_BYTES,
              "a group's map is a segment of words, so words can be counted from the file's start");

int pointer_map_load(struct pointer_map *map, struct container *c)
{
    uint32_t n = format_map_groups(c->segments_max), pages = pages_per_segment(c);
    *map = (struct pointer_map){.c = c,
                                .groups = calloc(n, sizeof *map->groups),
                                .group_count = n,
                                .word_shift = c->segment_shift - 3};
    struct journal_region *regions = tables_take(&c->tables, (uint64_t)n * pages * sizeof *regions);
    if (!map->groups)
        return pm__fail_system(ENOMEM, "%s: no memory for the tables of its pointer map", c->path);
    for (uint32_t g = 0; g < n; g++)
        map->groups[g].pages = &regions[(uint64_t)g * pages];
    return 0;
}

void pointer_map_unload(struct pointer_map *map)
{
    free(map->groups);
    map->groups = NULL;
}

uint64_t pointer_map_next(const struct pointer_map *map, uint64_t offset, uint64_t end)
{
    while (offset < end) {
        struct mapped_place at = mapped_place_at(map, offset);
        uint64_t group = map_group_number(map, at.group) * map_group_bytes(map);
        if (!at.group->words) {
            offset = group + map_group_bytes(map);
            continue;
        }
        uint64_t left = mapped_payload(at) >> at.shift;
        if (left)
            return min_u64(offset + (uint64_t)__builtin_ctzll(left) * sizeof(void *), end);
        offset = group + (at.word + 1) * MAP_WORD_BYTES;
    }
    return end;
}

void pointer_map_clear(struct pointer_map *map, struct journal *journal, uint64_t offset,
                       uint64_t bytes)
{
    uint64_t end = align_up(offset + bytes, sizeof(void *));
    offset = align_down(offset, sizeof(void *));
    while ((offset = pointer_map_next(map, offset, end)) < end) {
        struct mapped_place at = mapped_place_at(map, offset);
        uint64_t n = min_u64((end - offset) / sizeof(void *), SEAL_BITS - at.shift);
        uint64_t gone = bits_between(at.shift, at.shift + n);
        pointer_map_set_word(journal, at.group, at.word, mapped_payload(at) & ~gone);
        offset += n * sizeof(void *);
    }
}
