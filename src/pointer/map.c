#include "pointer/map.h"

#include "base/error.h"
#include "container/view.h"
#include "txn/foreign.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct container *container_of(const struct pointer_map *map)
{
    return map->a->c;
}

static_assert(MAP_GROUP_SEGMENTS * sizeof(uint64_t) == MAP_WORD_BYTES,
              "a group's map is a segment of words, so words can be counted from the file's start");

static struct mapped_place place_of(const struct pointer_map *map, uint64_t offset)
{
    return mapped_place_of_word(map->a->t, offset / sizeof(void *));
}

static uint32_t number_of(const struct pointer_map *map, const struct map_group *group)
{
    return (uint32_t)(group - map->groups);
}

static uint64_t group_bytes(const struct pointer_map *map)
{
    return MAP_GROUP_SEGMENTS * container_of(map)->segment_size;
}

static uint64_t offset_of(const struct pointer_map *map, struct mapped_place at)
{
    return number_of(map, at.group) * group_bytes(map) + at.word * MAP_WORD_BYTES +
           at.shift * sizeof(void *);
}

static uint64_t word_at(struct mapped_place at)
{
    at.shift = 0;
    return mapped_at(at);
}

enum words { WORDS_THERE, WORDS_NEW };

/* Note where a group's words are, for the journal too. If they are new, zero them. */
static void place_words(struct pointer_map *map, struct map_group *group, uint32_t segment,
                        enum words which)
{
    const struct container *c = container_of(map);
    uint32_t n = pages_per_segment(c);
    uint64_t offset = (uint64_t)segment << c->segment_shift;
    struct journal_region *zeroed = &map->zeroed[number_of(map, group)];
    *zeroed = (struct journal_region){.offset = offset,
                                      .words = (uint32_t)(c->segment_size / sizeof(uint64_t))};
    for (uint32_t i = 0; i < n; i++)
        group->pages[i] =
            (struct journal_region){.offset = offset + i * PM_PAGE, .words = MAP_PAGE_WORDS};
    if (which == WORDS_NEW)
        journal_clear(&map->a->t->journal, zeroed);
    group->segment = segment;
    __atomic_store_n(&group->words, shadow_word(c, offset), __ATOMIC_RELEASE);
}

/* Note that the group has no map. */
static void displace_words(struct map_group *group)
{
    group->segment = 0;
    __atomic_store_n(&group->words, NULL, __ATOMIC_RELEASE);
}

/* For allocator_upcalls: the segment table has been replaced, and every region is clean. */
static void find_maps(void *context)
{
    struct pointer_map *map = context;
    const struct container *c = container_of(map);
    for (uint32_t g = 0; g < map->group_count; g++)
        displace_words(&map->groups[g]);
    for (uint32_t i = 0, n = atomic_load(&c->segments); i < n; i++) {
        uint64_t word = table_word(shadow_table(c), i);
        if (segment_kind(word) == SEGMENT_MAP)
            place_words(map, &map->groups[segment_argument(word)], i, WORDS_THERE);
    }
}

/* For allocator_upcalls. */
static void forget_freed(void *context, uint64_t offset, uint64_t bytes)
{
    const struct pointer_map *map = context;
    pointer_map_clear(context, offset, bytes);
    txn_set_kind(map->a->t, offset, bytes, KIND_NONE);
}

/* For allocator_upcalls; at the end of this file. */
static int check_maps(void *context);

static int no_room(const struct pointer_map *map, int error)
{
    if (txn_check_medium(map->a->t) != 0)
        return -1;
    return container_fail_at(map->a->c, container_bytes(container_of(map)), error,
                             "no room for a map of pointers");
}

/* Make a map for a group that has none, or that is to have another. */
static int make_map(struct pointer_map *map, struct map_group *group)
{
    const struct container *c = container_of(map);
    int64_t segment = segments_take(map->a->t, 1, segment_word(SEGMENT_MAP, number_of(map, group)),
                                    c->segment_size);
    if (segment < 0)
        return no_room(map, (int)-segment);
    place_words(map, group, (uint32_t)segment, WORDS_NEW);
    count(&map->a->maps_made);
    map->made[number_of(map, group)] = map->a->maps_made;
    return 0;
}

/* For pointer_upcalls. */
static int make_group(void *context, uint32_t group)
{
    struct pointer_map *map = context;
    return make_map(map, &map->groups[group]);
}

/* Give a new map back, with all its bits. */
static void unmake_group(struct pointer_map *map, struct map_group *group)
{
    struct journal *journal = &map->a->t->journal;
    struct journal_region *zeroed = &map->zeroed[number_of(map, group)];
    for (uint32_t i = 0; i < pages_per_segment(container_of(map)); i++)
        group->pages[i].clear = group->pages[i].obsolete = true;
    zeroed->obsolete = true;
    journal_forget_new_obsolete(journal);
    segments_release(map->a->t, group->segment, 1);
    displace_words(group);
}

/* For allocator_upcalls. */
static void unmake(void *context, uint64_t made)
{
    struct pointer_map *map = context;
    for (uint32_t g = 0; made != map->a->maps_made && g < map->group_count; g++)
        if (map->groups[g].segment != 0 && map->made[g] > made && map->zeroed[g].clear)
            unmake_group(map, &map->groups[g]);
}

static void set_word(struct pointer_map *map, struct mapped_place at, uint64_t payload)
{
    txn_set_map_word(map->a->t, at.group, at.word, payload);
}

int pointer_map_open(struct pointer_map *map, struct allocator *a)
{
    struct container *c = a->c;
    uint32_t n = format_map_groups(c->segments_max), pages = pages_per_segment(c);
    *map = (struct pointer_map){.a = a, .group_count = n};
    map->groups = calloc(n, sizeof *map->groups);
    struct journal_region *regions = tables_take(&c->tables, (uint64_t)n * pages * sizeof *regions);
    map->zeroed = tables_take(&c->tables, n * sizeof *map->zeroed);
    map->made = tables_take(&c->tables, n * sizeof *map->made);
    if (!map->groups)
        return pm__fail_system(ENOMEM, "%s: no memory for the tables of its pointer map", c->path);
    for (uint32_t g = 0; g < n; g++)
        map->groups[g].pages = &regions[(uint64_t)g * pages];
    find_maps(map);
    a->upcalls = (struct allocator_upcalls){map, find_maps, forget_freed, check_maps, unmake};
    a->t->pointers = (struct pointer_upcalls){map, map->groups, make_group};
    return 0;
}

void pointer_map_close(struct pointer_map *map)
{
    free(map->groups);
}

int pointer_map_set(struct pointer_map *map, uint64_t offset, uint64_t count)
{
    while (count > 0) {
        struct mapped_place at = place_of(map, offset);
        if (!at.group->words && make_group(map, number_of(map, at.group)) != 0)
            return -1;
        uint64_t n = min_u64(count, SEAL_BITS - at.shift);
        uint64_t before = seal_payload(word_at(at));
        uint64_t after = before | bits_between(at.shift, at.shift + n);
        if (after != before)
            set_word(map, at, after);
        offset += n * sizeof(void *);
        count -= n;
    }
    return 0;
}

int pointer_map_make_all(struct pointer_map *map)
{
    int result = 0;
    for (uint32_t g = 0;
         g * MAP_GROUP_SEGMENTS < atomic_load(&container_of(map)->segments) && result == 0; g++)
        if (!map->groups[g].words)
            result = make_map(map, &map->groups[g]);
    return result;
}

int pointer_map_make(struct pointer_map *map, uint64_t offset, uint64_t bytes)
{
    uint64_t group = offset / group_bytes(map), end = divide_up(offset + bytes, group_bytes(map));
    int result = 0;
    for (; group < end && result == 0; group++)
        if (!map->groups[group].words)
            result = make_map(map, &map->groups[group]);
    return result;
}

static bool map_is_empty(const struct pointer_map *map, const struct map_group *group)
{
    for (uint64_t i = 0; i < container_of(map)->segment_size / sizeof *group->words; i++)
        if (group->words[i])
            return false;
    return true;
}

static int move_map(struct pointer_map *map, struct map_group *group)
{
    const uint64_t *words = group->words;
    if (make_map(map, group) != 0)
        return -1;
    for (uint32_t i = 0; i < container_of(map)->segment_size / sizeof *words; i++)
        if (words[i])
            set_word(map, (struct mapped_place){.group = group, .word = i}, seal_payload(words[i]));
    return 0;
}

int pointer_map_lower(struct pointer_map *map, uint32_t end)
{
    int result = 0;
    for (uint32_t g = 0; g < map->group_count && result == 0; g++) {
        struct map_group *group = &map->groups[g];
        uint32_t segment = group->segment;
        if (segment == 0)
            continue;
        if (map_is_empty(map, group))
            displace_words(group);
        else if (segment >= end && segments_find(map->a->t, 1) < segment)
            result = move_map(map, group);
        if (group->segment != segment)
            segments_release(map->a->t, segment, 1);
    }
    return result;
}

void pointer_map_clear(struct pointer_map *map, uint64_t offset, uint64_t bytes)
{
    uint64_t end = align_up(offset + bytes, sizeof(void *));
    offset = align_down(offset, sizeof(void *));
    while ((offset = pointer_map_next(map, offset, end)) < end) {
        struct mapped_place at = place_of(map, offset);
        uint64_t n = min_u64((end - offset) / sizeof(void *), SEAL_BITS - at.shift);
        uint64_t gone = bits_between(at.shift, at.shift + n);
        set_word(map, at, seal_payload(word_at(at)) & ~gone);
        offset += n * sizeof(void *);
    }
}

int pointer_map_copy(struct pointer_map *map, uint64_t to, uint64_t from, uint64_t bytes)
{
    uint64_t end = from + align_down(bytes, sizeof(void *)), at = from;
    int result = 0;
    while (result == 0 && (at = pointer_map_next(map, at, end)) < end) {
        result = pointer_map_set(map, to + at - from, 1);
        at += sizeof(void *);
    }
    return result;
}

uint64_t pointer_map_next(const struct pointer_map *map, uint64_t offset, uint64_t end)
{
    while (offset < end) {
        struct mapped_place at = place_of(map, offset);
        if (!at.group->words) {
            offset = (number_of(map, at.group) + UINT64_C(1)) * group_bytes(map);
            continue;
        }
        uint64_t left = seal_payload(word_at(at)) >> at.shift;
        if (left)
            return min_u64(offset + (uint64_t)__builtin_ctzll(left) * sizeof(void *), end);
        at.shift = 0;
        offset = offset_of(map, at) + MAP_WORD_BYTES;
    }
    return end;
}

uint64_t pointer_map_next_in_objects(const struct pointer_map *map, uint64_t offset, uint64_t end)
{
    struct view open = view_open(container_of(map));
    uint64_t start, size;
    while ((offset = pointer_map_next(map, offset, end)) < end &&
           !view_find(&open, offset, &start, &size))
        offset += sizeof(void *);
    return offset;
}

/* ---- pm_check() ------------------------------------------------------------------------------ */

static int damaged(const struct pointer_map *map, uint64_t offset, const char *what)
{
    return pm__fail_at(container_of(map)->path, offset, EBADMSG,
                       "%s; restore the file from a backup", what);
}

static int check_seals(const struct pointer_map *map, uint32_t segment)
{
    const struct container *c = container_of(map);
    uint64_t offset = (uint64_t)segment << c->segment_shift;
    const uint64_t *home = home_word(c, offset), *shadow = shadow_word(c, offset);
    for (uint32_t i = 0; i < c->segment_size / sizeof *home; i++)
        if (!seal_is_valid(home[i]) || !seal_is_valid(shadow[i]))
            return damaged(map, offset + i * sizeof *home, "a word of the pointer map is damaged");
    return 0;
}

static int check_pointer(const struct pointer_map *map, uint64_t offset)
{
    const struct container *c = container_of(map);
    int error = txn_touch(map->a->t, offset, sizeof(uint64_t));
    if (error != 0)
        return pm__fail_system_at(c->path, offset, -error, "cannot open the page of a pointer");
    uint64_t value = *(const uint64_t *)(c->base + offset);
    if (map->a->t->kinds && txn_kinds_at(c->base + offset, 1) != KIND_POINTER)
        return 0; /* no pointer any more; the next commit will say so */
    if (foreign_is_sentinel(value) || foreign_is_freed(value) || container_is_led_into(c, value) ||
        modules_know(&map->a->t->modules, value))
        return 0;
    if (map->leads_out_until_commit &&
        map->leads_out_until_commit((const uint64_t *)(c->base + offset)))
        return 0;
    return pm__fail_at(c->path, offset, EBADMSG,
                       "the pointer there, %#" PRIx64
                       ", leads out of the container; correct it, or call "
                       "pm_mark_data() if it is none",
                       value);
}

/* Check that the mapped words of one object lead to allowed places. */
static int check_object(const struct pointer_map *map, uint64_t offset, uint64_t end)
{
    while ((offset = pointer_map_next(map, offset, end)) < end) {
        if (check_pointer(map, offset) != 0)
            return -1;
        offset += sizeof(void *);
    }
    return 0;
}

/* Check that no word is mapped in [offset, end), where no object is. */
static int check_gap(const struct pointer_map *map, uint64_t offset, uint64_t end)
{
    uint64_t mapped = pointer_map_next(map, offset, end);
    return mapped == end ? 0 : damaged(map, mapped, "a pointer is mapped where there is no object");
}

static int check_gaps(const struct pointer_map *map)
{
    uint64_t offset = 0, size = 0, seen = 0;
    while (allocator_next_object(map->a, &offset, &size)) {
        if (check_gap(map, seen, offset) != 0)
            return -1;
        seen = offset += size;
    }
    return check_gap(map, seen, container_of(map)->max_size); /* the file may yet grow */
}

int pointer_map_check_pointers(const struct pointer_map *map)
{
    uint64_t offset = 0, size = 0;
    int result = 0;
    lock_acquire(&map->a->lock);
    for (; result == 0 && allocator_next_object(map->a, &offset, &size); offset += size)
        result = check_object(map, offset, offset + size);
    lock_release(&map->a->lock);
    return result;
}

static int check_maps(void *context)
{
    const struct pointer_map *map = context;
    const struct container *c = container_of(map);
    for (uint32_t i = 0, n = atomic_load(&c->segments); i < n; i++) {
        uint64_t word = table_word(shadow_table(c), i);
        if (segment_kind(word) != SEGMENT_MAP)
            continue;
        if (map->groups[segment_argument(word)].segment != i)
            return damaged(map, FORMAT_TABLE + i * sizeof word, "two maps of the same pointers");
        if (check_seals(map, i) != 0)
            return -1;
    }
    return check_gaps(map);
}
