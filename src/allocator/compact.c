/*
 * Plans which objects move, in steps. A cursor holds the whole progress, so a step that was rolled back can
 * be planned again.
 *
 * The census sorts the slabs by size. Within a size, slabs that lie low and are full come first. The first
 * slabs of a size are filled, and the last slabs are emptied into them. Adjacent objects move as one run, to
 * the first hole that is long enough (E2). Damaged slabs stay as they are.
 *
 * The tables have an entry of 12 bytes for each slab, and a byte for each segment.
 */
#define _GNU_SOURCE
#include "allocator/compact.h"

#include "allocator/slab.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- the census ------------------------------------------------------------------------------ */

static uint32_t segments_of(const struct compaction *k)
{
    return atomic_load(&k->a->c->segments);
}

static uint64_t word_at(const struct compaction *k, uint32_t segment)
{
    return segment < segments_of(k) ? table_word(shadow_table(k->a->c), segment) : 0;
}

static uint32_t slots_per_slab(const struct compaction *k, uint32_t object_size)
{
    return slab_shape(k->a->c->segment_size, object_size).objects;
}

/* By size. Within a size: slabs behind the end last, then the fullest first, then the lowest. */
static int compare_census(const void *a, const void *b, void *compaction)
{
    const struct compaction *k = compaction;
    const struct slab_census *x = a, *y = b;
    if (x->object_size != y->object_size)
        return x->object_size < y->object_size ? -1 : 1;
    bool behind_x = x->segment >= k->end, behind_y = y->segment >= k->end;
    if (behind_x != behind_y)
        return behind_x ? 1 : -1;
    if (x->used != y->used)
        return x->used > y->used ? -1 : 1;
    return (x->segment > y->segment) - (x->segment < y->segment);
}

static uint32_t group_end(const struct compaction *k, uint32_t group)
{
    uint32_t end = group;
    while (end < k->census_count && k->census[end].object_size == k->census[group].object_size)
        end++;
    return end;
}

/* The number of slabs that a group's objects would fill. */
static uint32_t group_needs(const struct compaction *k, uint32_t group, uint32_t end)
{
    uint64_t used = 0;
    for (uint32_t i = group; i < end; i++)
        used += k->census[i].used;
    return (uint32_t)divide_up(used, slots_per_slab(k, k->census[group].object_size));
}

static void take_census(struct compaction *k)
{
    for (uint32_t i = 0; i < segments_of(k); i++) {
        if (segment_kind(word_at(k, i)) != SEGMENT_SLAB)
            continue;
        const struct slab *s = slab_of(k->a, i);
        uint32_t used = slab_count(k->a, s);
        if (used > 0 && used != SLOT_FULL) /* damaged slabs stay as they are */
            k->census[k->census_count++] = (struct slab_census){s->shape.object_size, i, used};
    }
}

/* The number of existing maps that segments before `end` need. */
static uint32_t maps_needed(const struct compaction *k, uint32_t end)
{
    uint32_t maps = 0;
    for (uint32_t i = 0; i < segments_of(k); i++)
        maps += segment_kind(word_at(k, i)) == SEGMENT_MAP &&
                segment_argument(word_at(k, i)) * MAP_GROUP_SEGMENTS < end;
    return maps;
}

/* The number of segments that would be enough. Log and maps are few when compaction ends. */
static uint32_t segments_needed(const struct compaction *k)
{
    uint32_t needed = 2, maps = 0, end;
    for (uint32_t i = 0; i < segments_of(k); i++)
        needed += segment_kind(word_at(k, i)) == SEGMENT_META || segment_is_large(word_at(k, i));
    for (uint32_t group = 0; group < k->census_count; group = end) {
        end = group_end(k, group);
        needed += group_needs(k, group, end);
    }
    while (maps_needed(k, needed + maps) > maps)
        maps++;
    return needed + maps;
}

static size_t census_bytes(const struct compaction *k)
{
    return k->a->c->segments_max * sizeof *k->census;
}

int compaction_begin(struct compaction *k, struct allocator *a)
{
    *k = (struct compaction){.a = a};
    k->census = map_table(census_bytes(k));
    k->placed = calloc(a->c->segments_max, 1);
    if (k->census == MAP_FAILED || !k->placed)
        return pm__fail_system(ENOMEM, "%s: no memory for the tables to compact it", a->c->path);
    take_census(k);
    qsort_r(k->census, k->census_count, sizeof *k->census, compare_census, k); /* by size */
    k->end = segments_needed(k);
    qsort_r(k->census, k->census_count, sizeof *k->census, compare_census, k); /* and rank */
    return 0;
}

void compaction_end(struct compaction *k)
{
    if (k->census && k->census != MAP_FAILED)
        munmap(k->census, census_bytes(k));
    free(k->placed);
}

struct occupancy allocator_occupancy(struct allocator *a)
{
    struct occupancy all = {0};
    uint64_t offset = 0, bytes = 0;
    while (allocator_next_object(a, &offset, &bytes)) {
        all.objects++;
        all.object_bytes += bytes;
        offset += bytes;
    }
    for (uint32_t i = 0; i < atomic_load(&a->c->segments); i++)
        all.segments += segment_is_data(table_word(shadow_table(a->c), i));
    return all;
}

/* ---- runs of objects ------------------------------------------------------------------------- */

/* Adjacent slots in use. */
struct run {
    struct slab *slab;
    uint32_t first, end;
};

/* Whether the last object of a slab ends where a large object begins (E2). */
static bool touches_large(const struct compaction *k, const struct slab *s)
{
    uint64_t end = slot_offset(k->a, s, s->shape.objects);
    return slab_uses(k->a, s, s->shape.objects - 1) &&
           end == segment_offset(k->a, s->segment + 1) &&
           segment_kind(word_at(k, s->segment + 1)) == SEGMENT_LARGE;
}

/* Whether the slab that the census found is still there. It may have been emptied, and its segment may
 * have another owner. */
static bool is_there_still(const struct compaction *k, uint32_t i)
{
    uint32_t segment = k->census[i].segment;
    return segment_kind(word_at(k, segment)) == SEGMENT_SLAB && !k->placed[segment];
}

/* The next run of the slab that is being emptied; false if there is none. */
static bool next_run(struct compaction *k, struct run *run)
{
    if (!is_there_still(k, k->at.source - 1))
        return false;
    struct slab *s = slab_of(k->a, k->census[k->at.source - 1].segment);
    uint32_t slot = k->at.slot;
    while (slot < s->shape.objects && !slab_uses(k->a, s, slot))
        slot++;
    *run = (struct run){s, slot, slot};
    while (run->end < s->shape.objects && slab_uses(k->a, s, run->end))
        run->end++;
    k->at.slot = run->end;
    bool pinned = run->end == s->shape.objects && touches_large(k, s);
    return run->first < run->end && !pinned;
}

static void place_run(struct compaction *k, const struct run *run, struct slab *to, uint32_t slot,
                      struct move *moves, uint32_t *count)
{
    uint64_t size = run->slab->shape.object_size;
    slab_take_all(k->a, to, slot, slot + run->end - run->first);
    for (uint32_t i = run->first; i < run->end; i++, slot++)
        moves[(*count)++] =
            (struct move){slot_offset(k->a, run->slab, i), slot_offset(k->a, to, slot), size};
}

/* ---- into existing slabs --------------------------------------------------------------------- */

static struct slab *find_hole(struct compaction *k, uint32_t length, uint32_t *slot)
{
    uint32_t bucket = length < HOLE_LENGTHS ? length - 1 : HOLE_LENGTHS - 1;
    uint32_t *target = &k->at.holes[bucket].target, *at = &k->at.holes[bucket].slot;
    for (; *target < k->at.targets; (*target)++, *at = 0) {
        struct slab *s = slab_of(k->a, k->census[*target].segment);
        for (uint32_t n; *at < s->shape.objects; *at += n + 1) {
            n = slab_room(k->a, s, *at, length);
            if (n == length) {
                *slot = *at;
                return s;
            }
        }
    }
    return NULL;
}

static int fill_hole(struct compaction *k, const struct run *run, struct move *moves,
                     uint32_t *count)
{
    uint32_t slot = 0;
    struct slab *to = find_hole(k, run->end - run->first, &slot);
    if (to)
        place_run(k, run, to, slot, moves, count);
    return 0;
}

/* ---- into new slabs -------------------------------------------------------------------------- */

static int no_room(const struct compaction *k, int error)
{
    if (txn_check_medium(k->a->t) != 0)
        return -1;
    return container_fail(k->a->c, error, "%s: no room for an object that is to be moved",
                          k->a->c->path);
}

/* Whether the objects in `segment` are worth a new slab. The slab must be lower than `segment`. Also,
 * `segment` must lie too high, or there must be one slab less in the end. */
static bool is_worth_it(const struct compaction *k, uint32_t segment)
{
    return (segment >= k->end || k->at.left >= 2) && segments_find(k->a->t, 1) < segment;
}

static int fill_new(struct compaction *k, const struct run *run, struct move *moves,
                    uint32_t *count)
{
    uint32_t length = run->end - run->first;
    if (k->at.fresh == SLAB_NONE || length > run->slab->shape.objects - k->at.fresh_slot) {
        if (!is_worth_it(k, run->slab->segment))
            return 0;
        int error;
        const struct slab *s = slab_create(k->a, run->slab->shape.object_size, &error);
        if (!s)
            return no_room(k, error);
        k->at.fresh = s->segment;
        k->at.fresh_slot = 0;
        k->placed[s->segment] = true;
    }
    place_run(k, run, slab_of(k->a, k->at.fresh), k->at.fresh_slot, moves, count);
    k->at.fresh_slot += length;
    return 0;
}

/* ---- slab by slab ---------------------------------------------------------------------------- */

static void begin_group(struct compaction *k, uint32_t group)
{
    struct compaction_cursor *at = &k->at;
    at->group = group;
    at->group_end = at->source = group_end(k, group);
    at->slot = 0;
    at->fresh = SLAB_NONE;
    if (group == k->census_count)
        return;
    uint32_t needed = group_needs(k, group, at->group_end);
    at->targets = group;
    while (at->targets < group + needed && k->census[at->targets].segment < k->end)
        at->targets++;
    for (uint32_t i = 0; i < HOLE_LENGTHS; i++) {
        at->holes[i].target = group;
        at->holes[i].slot = 0;
    }
    at->left = 0;
    for (uint32_t i = at->targets; i < at->group_end; i++)
        at->left += is_there_still(k, i);
}

/* Whether the rest of the group has nothing to gain. */
static bool group_is_done(const struct compaction *k)
{
    return k->at.source == k->at.targets ||
           (k->at.phase == COMPACT_SLABS && k->at.holes[0].target == k->at.targets);
}

/* When the phase is over, `*count` stays as it is. */
static int empty_slabs(struct compaction *k, uint32_t most, struct move *moves, uint32_t *count)
{
    struct compaction_cursor *at = &k->at;
    while (at->group < k->census_count) {
        if (group_is_done(k)) {
            begin_group(k, at->group_end);
            continue;
        }
        struct run run;
        uint32_t resume = at->slot;
        if (!next_run(k, &run)) {
            at->source--;
            at->slot = 0;
            continue;
        }
        if (*count > 0 && *count + run.end - run.first > most) {
            at->slot = resume;
            return 0;
        }
        if ((at->phase == COMPACT_SLABS ? fill_hole : fill_new)(k, &run, moves, count) != 0)
            return -1;
    }
    return 0;
}

/* ---- large objects --------------------------------------------------------------------------- */

/*
 * Find adjacent segments [*first, *end) that lie too high, searching from the file's end. They have large
 * objects, and before these perhaps a slab that touches them (E2).
 */
static bool next_large(struct compaction *k, uint32_t *first, uint32_t *end)
{
    uint32_t *at = &k->at.segment;
    while (*at > k->end && !segment_is_large(word_at(k, *at - 1)))
        --*at;
    *end = *at;
    while (*at > 0 && segment_is_large(word_at(k, *at - 1)))
        --*at;
    if (*at < *end && segment_kind(word_at(k, *at - 1)) == SEGMENT_SLAB &&
        touches_large(k, slab_of(k->a, *at - 1)))
        --*at;
    *first = *at;
    return *end > k->end && *first < *end;
}

/* A damaged slab stays as it is. A slab that lies low enough stays too. */
static bool large_may_move(const struct compaction *k, uint32_t first)
{
    if (segment_is_large(word_at(k, first)))
        return true;
    return first >= k->end && slab_count(k->a, slab_of(k->a, first)) != SLOT_FULL;
}

/* Move all objects of a slab, each to the same slot of another slab. */
static void place_slab(struct compaction *k, uint32_t from, uint32_t to, struct move *moves,
                       uint32_t *count)
{
    struct run run = {.slab = slab_of(k->a, from)};
    struct slab *s = slab_begin(k->a, to, run.slab->shape.object_size);
    for (run.first = 0; run.first < s->shape.objects; run.first++) {
        run.end = run.first + 1;
        if (slab_uses(k->a, run.slab, run.first))
            place_run(k, &run, s, run.first, moves, count);
    }
}

static void place_large(struct compaction *k, uint32_t first, uint32_t end, uint32_t to,
                        struct move *moves, uint32_t *count)
{
    memset(k->placed + to, true, end - first);
    for (uint32_t i = first; i < end; i++, to++)
        if (segment_kind(word_at(k, i)) == SEGMENT_SLAB)
            place_slab(k, i, to, moves, count);
        else if (segment_kind(word_at(k, i)) == SEGMENT_LARGE)
            moves[(*count)++] =
                (struct move){segment_offset(k->a, i), segment_offset(k->a, to),
                              (uint64_t)segment_argument(word_at(k, i)) << k->a->c->segment_shift};
}

static uint64_t header_bytes(const struct compaction *k, uint32_t segment)
{
    return segment_is_large(word_at(k, segment)) ? 0 : slab_of(k->a, segment)->shape.header_bytes;
}

static int lower_large(struct compaction *k, uint32_t most, struct move *moves, uint32_t *count)
{
    uint32_t first, end;
    while (*count < most && next_large(k, &first, &end)) {
        if (segments_find(k->a->t, end - first) > first || !large_may_move(k, first))
            continue;
        int64_t to = segments_take_alike(k->a->t, first, end - first, header_bytes(k, first));
        if (to < 0)
            return no_room(k, (int)-to);
        place_large(k, first, end, (uint32_t)to, moves, count);
    }
    return 0;
}

/* ---- all together ---------------------------------------------------------------------------- */

static void begin_phase(struct compaction *k, enum compaction_phase phase)
{
    k->at = (struct compaction_cursor){.phase = phase, .segment = segments_of(k)};
    begin_group(k, 0);
}

int compaction_next(struct compaction *k, uint32_t most, struct move *moves, uint32_t *count)
{
    if (k->at.segment == 0)
        begin_phase(k, COMPACT_SLABS);
    *count = 0;
    for (;;) {
        if (k->at.phase == COMPACT_DONE)
            return 0;
        bool slabs = k->at.phase == COMPACT_SLABS || k->at.phase == COMPACT_NEW;
        int result = (slabs ? empty_slabs : lower_large)(k, most, moves, count);
        if (result != 0 || *count > 0)
            return result;
        begin_phase(k, k->at.phase + 1);
    }
}

static void free_slots(struct compaction *k, struct slab *s, const struct move *moves,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        slab_put(k->a, s, slab_slot_at(k->a, s, moves[i].from));
    if (slab_is_empty(k->a, s))
        slab_give_back(k->a, s);
}

void compaction_free(struct compaction *k, const struct move *moves, uint32_t count)
{
    struct allocator *a = k->a;
    for (uint32_t i = 0; i < count; i++)
        forget_pointers(a, moves[i].from, moves[i].bytes);
    for (uint32_t i = 0, n; i < count; i += n) {
        uint32_t segment = (uint32_t)(moves[i].from >> a->c->segment_shift);
        n = 1;
        if (segment_is_large(word_at(k, segment))) {
            segments_release(a->t, segment, (uint32_t)(moves[i].bytes >> a->c->segment_shift));
            continue;
        }
        while (i + n < count && moves[i + n].from >> a->c->segment_shift == segment)
            n++;
        free_slots(k, slab_of(a, segment), moves + i, n);
    }
}

void allocator_free_empty(struct allocator *a)
{
    for (uint32_t i = 0; i < atomic_load(&a->c->segments); i++)
        if (segment_kind(table_word(shadow_table(a->c), i)) == SEGMENT_SLAB &&
            slab_count(a, slab_of(a, i)) == 0)
            slab_give_back(a, slab_of(a, i));
}
