/*
 * Segments of the pointer map: a group gets one when its first pointer is recorded. A transaction takes it
 * and gives it back like any other segment, through the segment table.
 */
#include "txn/txn.h"

#include "base/error.h"

enum words { WORDS_THERE, WORDS_NEW };

/* Note where a group's words are, for the journal too. If they are new, zero them. */
static void place_words(struct txn *t, struct map_group *group, uint32_t segment, enum words which)
{
    const struct container *c = t->c;
    uint64_t offset = (uint64_t)segment << c->segment_shift;
    group->zeroed = (struct journal_region){
        .offset = offset, .words = (uint32_t)(c->segment_size / sizeof(uint64_t))};
    for (uint32_t i = 0; i < pages_per_segment(c); i++)
        group->pages[i] =
            (struct journal_region){.offset = offset + i * PM_PAGE, .words = MAP_PAGE_WORDS};
    if (which == WORDS_NEW)
        journal_clear(&t->journal, &group->zeroed);
    group->segment = segment;
    __atomic_store_n(&group->words, shadow_word(c, offset), __ATOMIC_RELEASE);
}

void txn_displace_map(struct map_group *group)
{
    group->segment = 0;
    __atomic_store_n(&group->words, NULL, __ATOMIC_RELEASE);
}

void txn_find_maps(struct txn *t)
{
    struct pointer_map *map = &t->map;
    for (uint32_t g = 0; g < map->group_count; g++)
        txn_displace_map(&map->groups[g]);
    for (uint32_t i = 0, n = atomic_load(&t->c->segments); i < n; i++) {
        uint64_t word = table_word(shadow_table(t->c), i);
        if (segment_kind(word) == SEGMENT_MAP)
            place_words(t, &map->groups[segment_argument(word)], i, WORDS_THERE);
    }
}

int txn_make_map(struct txn *t, struct map_group *group)
{
    const struct container *c = t->c;
    int64_t segment = segments_take(
        t, 1, segment_word(SEGMENT_MAP, map_group_number(&t->map, group)), c->segment_size);
    if (segment < 0 && txn_check_medium(t) != 0)
        return -1;
    if (segment < 0)
        return container_fail_at(t->c, container_bytes(c), (int)-segment,
                                 "no room for a map of pointers");
    place_words(t, group, (uint32_t)segment, WORDS_NEW);
    count(&t->map.made);
    group->made = t->map.made;
    return 0;
}

/* Give a new map back, with all its bits. */
static void unmake(struct txn *t, struct map_group *group)
{
    for (uint32_t i = 0; i < pages_per_segment(t->c); i++)
        group->pages[i].clear = group->pages[i].obsolete = true;
    group->zeroed.obsolete = true;
    journal_forget_new_obsolete(&t->journal);
    segments_release(t, group->segment, 1);
    txn_displace_map(group);
}

void txn_unmake_maps(struct txn *t, uint64_t made)
{
    struct pointer_map *map = &t->map;
    for (uint32_t g = 0; made != map->made && g < map->group_count; g++) {
        struct map_group *group = &map->groups[g];
        if (group->segment != 0 && group->made > made && group->zeroed.clear)
            unmake(t, group);
    }
}
