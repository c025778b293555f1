/*
 * Declared pointers: setting, copying and checking bits of the pointer map. A word of the map has 56 bits,
 * and changes once for all of them. The first pointer of a group makes the group's map, which takes a
 * segment.
 *
 * The upper half of pm_check() is here too. Each layer checks its own tables, the lowest layer first.
 */
#include "pointer/pointers.h"

#include "address/foreign.h"
#include "base/error.h"
#include "container/contents.h"
#include "txn/sums.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int pointers_set(struct allocator *a, uint64_t offset, uint64_t count)
{
    while (count > 0) {
        struct mapped_place at = mapped_place_at(&a->t->map, offset);
        if (!at.group->words && txn_make_map(a->t, at.group) != 0)
            return -1;
        uint64_t n = min_u64(count, SEAL_BITS - at.shift);
        uint64_t before = mapped_payload(at), after = before | bits_between(at.shift, at.shift + n);
        if (after != before)
            pointer_map_set_word(&a->t->journal, at.group, at.word, after);
        offset += n * sizeof(void *);
        count -= n;
    }
    return 0;
}

int pointers_make_maps(struct allocator *a, uint64_t offset, uint64_t bytes)
{
    struct pointer_map *map = &a->t->map;
    uint64_t group = offset / map_group_bytes(map),
             end = divide_up(offset + bytes, map_group_bytes(map));
    int result = 0;
    for (; group < end && result == 0; group++)
        if (!map->groups[group].words)
            result = txn_make_map(a->t, &map->groups[group]);
    return result;
}

int pointers_make_all_maps(struct allocator *a)
{
    return pointers_make_maps(a, 0, container_bytes(a->c));
}

static bool map_is_empty(const struct allocator *a, const struct map_group *group)
{
    for (uint64_t i = 0; i < a->c->segment_size / sizeof *group->words; i++)
        if (group->words[i])
            return false;
    return true;
}

static int move_map(struct allocator *a, struct map_group *group)
{
    const uint64_t *words = group->words;
    if (txn_make_map(a->t, group) != 0)
        return -1;
    for (uint32_t i = 0; i < a->c->segment_size / sizeof *words; i++)
        if (words[i])
            pointer_map_set_word(&a->t->journal, group, i, seal_payload(words[i]));
    return 0;
}

int pointers_lower_maps(struct allocator *a, uint32_t end)
{
    struct pointer_map *map = &a->t->map;
    int result = 0;
    for (uint32_t g = 0; g < map->group_count && result == 0; g++) {
        struct map_group *group = &map->groups[g];
        uint32_t segment = group->segment;
        if (segment == 0)
            continue;
        if (map_is_empty(a, group))
            txn_displace_map(group);
        else if (segment >= end && segments_find(a->t, 1) < segment)
            result = move_map(a, group);
        if (group->segment != segment)
            segments_release(a->t, segment, 1);
    }
    return result;
}

int pointers_copy(struct allocator *a, uint64_t to, uint64_t from, uint64_t bytes)
{
    uint64_t end = from + align_down(bytes, sizeof(void *)), at = from;
    int result = 0;
    while (result == 0 && (at = pointer_map_next(&a->t->map, at, end)) < end) {
        result = pointers_set(a, to + at - from, 1);
        at += sizeof(void *);
    }
    return result;
}

uint64_t pointers_next(const struct allocator *a, uint64_t offset, uint64_t end)
{
    struct contents open = contents_open(a->c);
    uint64_t start, size;
    while ((offset = pointer_map_next(&a->t->map, offset, end)) < end &&
           !contents_find(&open, offset, &start, &size))
        offset += sizeof(void *);
    return offset;
}

/* ---- pm_check() ------------------------------------------------------------------------------ */

static int check_seals(const struct allocator *a, uint32_t segment)
{
    const struct container *c = a->c;
    uint64_t offset = (uint64_t)segment << c->segment_shift;
    const uint64_t *home = home_word(c, offset), *shadow = shadow_word(c, offset);
    for (uint32_t i = 0; i < c->segment_size / sizeof *home; i++)
        if (!seal_is_valid(home[i]) || !seal_is_valid(shadow[i]))
            return container_damaged(a->c, offset + i * sizeof *home, "a word of the pointer map is damaged");
    return 0;
}

static int check_pointer(const struct allocator *a, uint64_t offset,
                         leads_out_until_commit *allowed)
{
    const struct container *c = a->c;
    int error = txn_touch(a->t, offset, sizeof(uint64_t));
    if (error != 0)
        return pm__fail_system_at(c->path, offset, -error, "cannot open the page of a pointer");
    uint64_t value = *(const uint64_t *)(c->base + offset);
    if (a->t->tracker.kinds && track_kinds_at(c->base + offset, 1) != KIND_POINTER)
        return 0; /* no pointer any more; the next commit will say so */
    if (foreign_is_sentinel(value) || foreign_is_freed(value) || container_is_led_into(c, value) ||
        modules_know(&a->t->modules, value))
        return 0;
    if (allowed && allowed((const uint64_t *)(c->base + offset)))
        return 0;
    return pm__fail_at(c->path, offset, EBADMSG,
                       "the pointer there, %#" PRIx64
                       ", leads out of the container; correct it, or call "
                       "pm_mark_data() if it is none",
                       value);
}

/* Check that the mapped words of one object lead to allowed places. */
static int check_object(const struct allocator *a, uint64_t offset, uint64_t end,
                        leads_out_until_commit *allowed)
{
    while ((offset = pointer_map_next(&a->t->map, offset, end)) < end) {
        if (check_pointer(a, offset, allowed) != 0)
            return -1;
        offset += sizeof(void *);
    }
    return 0;
}

/* Check that no word is mapped in [offset, end), where no object is. */
static int check_gap(const struct allocator *a, uint64_t offset, uint64_t end)
{
    uint64_t mapped = pointer_map_next(&a->t->map, offset, end);
    return mapped == end ? 0
                         : container_damaged(a->c, mapped,
                                             "a pointer is mapped where there is no object");
}

static int check_gaps(const struct allocator *a)
{
    uint64_t offset = 0, size = 0, seen = 0;
    while (allocator_next_object(a, &offset, &size)) {
        if (check_gap(a, seen, offset) != 0)
            return -1;
        seen = offset += size;
    }
    return check_gap(a, seen, a->c->max_size); /* the file may yet grow */
}

int pointers_check(struct allocator *a, leads_out_until_commit *allowed)
{
    uint64_t offset = 0, size = 0;
    int result = 0;
    lock_acquire(&a->lock);
    for (; result == 0 && allocator_next_object(a, &offset, &size); offset += size)
        result = check_object(a, offset, offset + size, allowed);
    lock_release(&a->lock);
    return result;
}

static int check_maps(const struct allocator *a)
{
    const struct container *c = a->c;
    for (uint32_t i = 0, n = atomic_load(&c->segments); i < n; i++) {
        uint64_t word = table_word(shadow_table(c), i);
        if (segment_kind(word) != SEGMENT_MAP)
            continue;
        if (a->t->map.groups[segment_argument(word)].segment != i)
            return container_damaged(a->c, FORMAT_TABLE + i * sizeof word, "two maps of the same pointers");
        if (check_seals(a, i) != 0)
            return -1;
    }
    return check_gaps(a);
}

/* Each layer checks its own, from the bottom to the top. The sums come last, because they name no place. */
static int check_tables(struct allocator *a)
{
    int result = container_check_headers(a->c);
    if (result == 0)
        result = txn_check(a->t);
    if (result == 0)
        result = allocator_check(a);
    if (result == 0)
        result = check_maps(a);
    if (result == 0)
        result = sums_check_fixed(a->t) != 0 ? -1 : sums_check_rest(a->t);
    return result;
}

int pointers_check_tables(struct allocator *a)
{
    lock_acquire(&a->lock);
    int result = check_tables(a);
    lock_release(&a->lock);
    return result;
}
