#include "pointer/map.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A bit of the map. */
struct place {
    uint32_t group;
    uint32_t word; /* of the group's map */
    uint32_t bit;
};

static const struct container *container_of(const struct pointer_map *map)
{
    return map->a->c;
}

static_assert(MAP_GROUP_SEGMENTS * sizeof(uint64_t) == MAP_WORD_BYTES,
              "a group's map is a segment of words, so words can be counted from the file's start");

static struct place place_of(const struct pointer_map *map, uint64_t offset)
{
    uint32_t shift = container_of(map)->segment_shift - 3; /* of the words of a segment */
    uint64_t word = offset / MAP_WORD_BYTES;
    return (struct place){(uint32_t)(word >> shift),
                          (uint32_t)(word & ((UINT64_C(1) << shift) - 1)),
                          (uint32_t)(offset % MAP_WORD_BYTES / sizeof(void *))};
}

static uint64_t offset_of(const struct pointer_map *map, struct place at)
{
    uint64_t group = (uint64_t)at.group * MAP_GROUP_SEGMENTS * container_of(map)->segment_size;
    return group + (uint64_t)at.word * MAP_WORD_BYTES + at.bit * sizeof(void *);
}

/* The group's map in the shadow; NULL if it has none. */
static const uint64_t *words_of(const struct pointer_map *map, uint32_t group)
{
    const struct container *c = container_of(map);
    uint64_t offset = (uint64_t)map->segment[group] << c->segment_shift;
    return offset ? shadow_word(c, offset) : NULL;
}

static uint64_t word_at(const struct pointer_map *map, struct place at)
{
    const uint64_t *words = words_of(map, at.group);
    return words ? __atomic_load_n(&words[at.word], __ATOMIC_RELAXED) : 0;
}

static struct journal_region *pages_of(const struct pointer_map *map, uint32_t group)
{
    return &map->pages[(uint64_t)group * pages_per_segment(container_of(map))];
}

/* Where the journal finds the words of a group's map. */
static void place_regions(struct pointer_map *map, uint32_t group)
{
    const struct container *c = container_of(map);
    uint32_t n = pages_per_segment(c);
    uint64_t offset = (uint64_t)map->segment[group] << c->segment_shift;
    map->zeroed[group] = (struct journal_region){
        .offset = offset, .words = (uint32_t)(c->segment_size / sizeof(uint64_t))};
    for (uint32_t i = 0; i < n; i++)
        pages_of(map, group)[i] =
            (struct journal_region){.offset = offset + i * PM_PAGE, .words = MAP_PAGE_WORDS};
}

/* For allocator_upcalls: the table is another one now, and every region is clean. */
static void find_maps(void *context)
{
    struct pointer_map *map = context;
    const struct container *c = container_of(map);
    memset(map->segment, 0, map->groups * sizeof *map->segment);
    for (uint32_t i = 0, n = atomic_load(&c->segments); i < n; i++) {
        uint64_t word = table_word(shadow_table(c), i);
        if (segment_kind(word) != SEGMENT_MAP)
            continue;
        map->segment[segment_argument(word)] = i;
        place_regions(map, segment_argument(word));
    }
}

/* For allocator_upcalls. */
static void forget_freed(void *context, uint64_t offset, uint64_t bytes)
{
    const struct pointer_map *map = context;
    pointer_map_clear(context, offset, bytes);
    txn_set_kind(map->a->t, offset, bytes, KIND_NONE);
}

/* For pointer_upcalls; below. */
static struct mapped_lines lines_of_group(void *context, uint64_t line);
static int make_lines(void *context, uint64_t line);

/* For allocator_upcalls; at the end of this file. */
static int check_maps(void *context);

static int no_room(const struct pointer_map *map, int error)
{
    if (txn_check_medium(map->a->t) != 0)
        return -1;
    return container_fail(map->a->c, error, "%s: offset %llu: no room for a map of pointers",
                          container_of(map)->path,
                          (unsigned long long)container_bytes(container_of(map)));
}

/* A map for a group that has none. */
static int make_map(struct pointer_map *map, uint32_t group)
{
    const struct container *c = container_of(map);
    int64_t segment =
        segments_take(map->a->t, 1, segment_word(SEGMENT_MAP, group), c->segment_size);
    if (segment < 0)
        return no_room(map, (int)-segment);
    map->segment[group] = (uint32_t)segment;
    place_regions(map, group);
    journal_clear(&map->a->t->journal, &map->zeroed[group]);
    return 0;
}

static void set_word(struct pointer_map *map, struct place at, uint64_t payload)
{
    txn_set_map_word(map->a->t, pages_of(map, at.group), at.word, payload);
}

int pointer_map_open(struct pointer_map *map, struct allocator *a)
{
    struct tables *tables = &a->c->tables;
    *map = (struct pointer_map){.a = a, .groups = format_map_groups(a->c->segments_max)};
    uint64_t pages = (uint64_t)map->groups * pages_per_segment(a->c);
    map->segment = malloc(map->groups * sizeof *map->segment);
    map->pages = tables_take(tables, pages * sizeof *map->pages);
    map->zeroed = tables_take(tables, map->groups * sizeof *map->zeroed);
    if (!map->segment)
        return pm__fail_system(ENOMEM, "%s: no memory for the tables of its pointer map",
                               a->c->path);
    find_maps(map);
    a->upcalls = (struct allocator_upcalls){map, find_maps, forget_freed, check_maps};
    a->t->pointers = (struct pointer_upcalls){map, lines_of_group, make_lines};
    return 0;
}

void pointer_map_close(struct pointer_map *map)
{
    free(map->segment);
}

int pointer_map_set(struct pointer_map *map, uint64_t offset, uint64_t count)
{
    while (count > 0) {
        struct place at = place_of(map, offset);
        if (map->segment[at.group] == 0 && make_map(map, at.group) != 0)
            return -1;
        uint64_t n = min_u64(count, SEAL_BITS - at.bit);
        uint64_t before = seal_payload(word_at(map, at));
        uint64_t after = before | bits_between(at.bit, at.bit + (uint32_t)n);
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
    for (uint32_t group = 0;
         group * MAP_GROUP_SEGMENTS < atomic_load(&container_of(map)->segments) && result == 0;
         group++)
        if (map->segment[group] == 0)
            result = make_map(map, group);
    return result;
}

static bool map_is_empty(const struct pointer_map *map, uint32_t group)
{
    const uint64_t *words = words_of(map, group);
    for (uint64_t i = 0; i < container_of(map)->segment_size / sizeof *words; i++)
        if (words[i])
            return false;
    return true;
}

static int move_map(struct pointer_map *map, uint32_t group)
{
    const uint64_t *words = words_of(map, group);
    if (make_map(map, group) != 0)
        return -1;
    for (uint32_t i = 0; i < container_of(map)->segment_size / sizeof *words; i++)
        if (words[i])
            set_word(map, (struct place){.group = group, .word = i}, seal_payload(words[i]));
    return 0;
}

int pointer_map_lower(struct pointer_map *map, uint32_t end)
{
    int result = 0;
    for (uint32_t group = 0; group < map->groups && result == 0; group++) {
        uint32_t segment = map->segment[group];
        if (segment == 0)
            continue;
        if (map_is_empty(map, group))
            map->segment[group] = 0;
        else if (segment >= end && segments_find(map->a->t, 1) < segment)
            result = move_map(map, group);
        if (map->segment[group] != segment)
            segments_release(map->a->t, segment, 1);
    }
    return result;
}

void pointer_map_clear(struct pointer_map *map, uint64_t offset, uint64_t bytes)
{
    uint64_t end = align_up(offset + bytes, sizeof(void *));
    offset = align_down(offset, sizeof(void *));
    while ((offset = pointer_map_next(map, offset, end)) < end) {
        struct place at = place_of(map, offset);
        uint64_t n = min_u64((end - offset) / sizeof(void *), SEAL_BITS - at.bit);
        uint64_t gone = bits_between(at.bit, at.bit + (uint32_t)n);
        set_word(map, at, seal_payload(word_at(map, at)) & ~gone);
        offset += n * sizeof(void *);
    }
}

/* ---- line by line, for commits --------------------------------------------------------------- */

static_assert(MAP_WORD_BYTES % PM_LINE == 0, "all words of a line are in one word of the map");

static struct mapped_lines lines_of_group(void *context, uint64_t line)
{
    const struct pointer_map *map = context;
    uint64_t lines = MAP_GROUP_SEGMENTS * (container_of(map)->segment_size / PM_LINE);
    uint32_t group = place_of(map, line * PM_LINE).group;
    const uint64_t *words = words_of(map, group);
    return (struct mapped_lines){words, group * lines, words ? lines : 0, pages_of(map, group)};
}

static int make_lines(void *context, uint64_t line)
{
    return make_map(context, place_of(context, line * PM_LINE).group);
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
    const struct container *c = container_of(map);
    while (offset < end) {
        struct place at = place_of(map, offset);
        if (map->segment[at.group] == 0) {
            offset = (at.group + UINT64_C(1)) * MAP_GROUP_SEGMENTS * c->segment_size;
            continue;
        }
        uint64_t left = seal_payload(word_at(map, at)) >> at.bit;
        if (left)
            return min_u64(offset + (uint64_t)__builtin_ctzll(left) * sizeof(void *), end);
        at.bit = 0;
        offset = offset_of(map, at) + MAP_WORD_BYTES;
    }
    return end;
}

/* ---- pm_check() ------------------------------------------------------------------------------ */

static int damaged(const struct pointer_map *map, uint64_t offset, const char *what)
{
    return pm__fail(EBADMSG, "%s: offset %llu: %s", container_of(map)->path,
                    (unsigned long long)offset, what);
}

static int check_seals(const struct pointer_map *map, uint32_t group)
{
    const struct container *c = container_of(map);
    uint64_t offset = (uint64_t)map->segment[group] << c->segment_shift;
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
        return pm__fail_system(-error, "%s: offset %llu: cannot open the page of a pointer",
                               c->path, (unsigned long long)offset);
    uint64_t value = *(const uint64_t *)(c->base + offset);
    if (map->a->t->kinds && txn_kinds_at(c->base + offset, 1) != KIND_POINTER)
        return 0; /* something else by now, as the next commit will say */
    if (value == 0 || container_is_led_into(c, value) || modules_know(&map->a->t->modules, value))
        return 0;
    if (map->leads_out_until_commit &&
        map->leads_out_until_commit((const uint64_t *)(c->base + offset)))
        return 0;
    return pm__fail(EBADMSG,
                    "%s: offset %llu: the pointer there, %#llx, leads out of the container; "
                    "correct it, or call pm_mark_data() if it is none",
                    c->path, (unsigned long long)offset, (unsigned long long)value);
}

/* The mapped words of one object. */
static int check_object(const struct pointer_map *map, uint64_t offset, uint64_t end)
{
    while ((offset = pointer_map_next(map, offset, end)) < end) {
        if (check_pointer(map, offset) != 0)
            return -1;
        offset += sizeof(void *);
    }
    return 0;
}

/* That no word is mapped in [offset, end), where no object is. */
static int check_gap(const struct pointer_map *map, uint64_t offset, uint64_t end)
{
    uint64_t mapped = pointer_map_next(map, offset, end);
    return mapped == end ? 0 : damaged(map, mapped, "a pointer is mapped where there is no object");
}

static int check_mapped(const struct pointer_map *map)
{
    uint64_t offset = 0, size = 0, seen = 0;
    while (allocator_next_object(map->a, &offset, &size)) {
        if (check_gap(map, seen, offset) != 0 || check_object(map, offset, offset + size) != 0)
            return -1;
        seen = offset += size;
    }
    return check_gap(map, seen, container_of(map)->max_size); /* the file may yet grow */
}

static int check_maps(void *context)
{
    const struct pointer_map *map = context;
    const struct container *c = container_of(map);
    for (uint32_t i = 0, n = atomic_load(&c->segments); i < n; i++) {
        uint64_t word = table_word(shadow_table(c), i);
        if (segment_kind(word) != SEGMENT_MAP)
            continue;
        if (map->segment[segment_argument(word)] != i)
            return damaged(map, FORMAT_TABLE + i * sizeof word, "two maps of the same pointers");
        if (check_seals(map, segment_argument(word)) != 0)
            return -1;
    }
    return check_mapped(map);
}
