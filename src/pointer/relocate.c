/*
 * Relocation: the pointers of home get other addresses. It needs no log. Its steps are
 *
 *   1  The state page's `target` gets the new address; a round.
 *   2  Each mapped word that leads to the old addresses is changed to lead to the new; a round.
 *   3  `base` becomes the new address, a round. The guard's base becomes the new address, a round.
 *      `target` becomes 0, a round.
 *
 * After a crash in between, some words have been relocated and some have not. Each word tells by itself
 * whether it has been relocated:
 *
 *   V1  Old and new addresses have none in common. The byte past the end counts, because pointers may
 *       lead there. The first byte does not count, because the header is there.
 *
 *   V2  Each step relies only on durable data, whoever stored the data. After the mere death of a
 *       process `target` and relocated words may be in the cache only, and the power may fail next. So an
 *       opening that goes on publishes `target` again, and writes back all mapped words.
 *
 * A log container has no words to change in place. There step 2 is one commit record, which also says what
 * address the pointers mean. If the record cannot be written, for example because the disk is full, `target`
 * becomes 0 again. So the next opening finds the container at its own addresses, and needs no room.
 *
 * So the next opening goes on where this one was interrupted, however often. By then the new addresses
 * may be taken, too. Then the opening completes this relocation (home can be read from anywhere) and
 * makes another.
 */
#include "pointer/relocate.h"

#include "base/error.h"
#include "base/vector.h"
#include "container/contents.h"
#include "txn/sums.h"

#include <errno.h>
#include <inttypes.h>

static int cannot_relocate(const struct container *c, int error)
{
    return pm__fail_system(-error, "%s: cannot move its pointers to other addresses", c->path);
}

/* Store a word of the state page; a round of its own. -errno */
static int publish(struct container *c, uint64_t *word, uint64_t payload)
{
    if (c->is_log && c->readonly) /* a copy gets these words and the log, which must agree */
        return 0;
    int error = medium_publish_word(&c->medium, word, seal(payload));
    return error == 0 ? medium_fence(&c->medium) : error;
}

/* A container of an older format gets its guard when it is upgraded. */
static int publish_to_guard(struct container *c, uint64_t *word, uint64_t payload)
{
    return c->header.version < FORMAT_VERSION ? 0 : publish(c, word, payload);
}

/* The words that one word of the map calls pointers. Only words of objects count, whatever the map says
 * (contents.h). */
static uint64_t mapped_words(const struct container *c, uint64_t map, uint64_t offset)
{
    struct contents committed = contents_committed(c);
    return seal_payload(map) & contents_words(&committed, offset);
}

/* What a relocation has changed in home, if it is the engine's business: redo_run() values. */
struct moved {
    struct vector runs;
    bool no_memory;
};

/* Make the words of [first, end) durable by the next round, or by the engine. */
static void note_moved(struct container *c, struct moved *moved, uint64_t first, uint64_t end)
{
    if (!moved) {
        medium_write_back(&c->medium, home_word(c, first), end - first);
        return;
    }
    uint64_t line = first / PM_LINE, *run = vector_push(&moved->runs, sizeof *run);
    if (run)
        *run = redo_run(line, divide_up(end, PM_LINE) - line);
    moved->no_memory |= !run;
}

/* Move the words that one word of the map names, at `offset` and behind. */
static bool relocate_few(struct container *c, uint64_t map, uint64_t offset, void *moved)
{
    uint64_t from = c->pointers_base, to = c->pointers_target;
    uint64_t first = UINT64_MAX, end = 0;
    for (uint64_t left = mapped_words(c, map, offset); left; left &= left - 1) {
        uint64_t at = offset + (uint64_t)__builtin_ctzll(left) * sizeof(void *);
        uint64_t *word = home_word(c, at);
        if (*word - from - 1 < c->max_size) {
            __atomic_store_n(word, *word - from + to,
                             __ATOMIC_RELAXED); /* whole, on the medium too */
            c->pointers_moved++;
        }
        first = min_u64(first, at);
        end = at + sizeof *word;
    }
    if (end > 0)
        note_moved(c, moved, first, end);
    return false;
}

struct search {
    uint64_t from, size, found; /* addresses; and an offset */
};

/* Whether one of these words leads to [from, from + size). */
static bool find_among_few(struct container *c, uint64_t map, uint64_t offset, void *context)
{
    struct search *s = context;
    for (uint64_t left = mapped_words(c, map, offset); left; left &= left - 1) {
        s->found = offset + (uint64_t)__builtin_ctzll(left) * sizeof(void *);
        if (*home_word(c, s->found) - s->from < s->size)
            return true;
    }
    return false;
}

static int check_map(const struct container *c, uint64_t offset)
{
    for (uint64_t i = 0; i < c->segment_size; i += sizeof(uint64_t))
        if (!seal_is_valid(*home_word(c, offset + i)))
            return pm__fail_at(c->path, offset + i, EBADMSG,
                               "a word of the pointer map is damaged, so that the container cannot "
                               "be moved; open it where its addresses are free");
    return 0;
}

/* Visits a word of the map that is not 0, with the offset of the first word it describes. True ends the
 * visits. */
typedef bool visitor(struct container *c, uint64_t map, uint64_t offset, void *context);

static bool visit_map(struct container *c, uint64_t offset, uint64_t group, visitor *visit,
                      void *context)
{
    const uint64_t *map = home_word(c, offset);
    uint64_t first = group * MAP_GROUP_SEGMENTS * c->segment_size;
    for (uint64_t i = 0; i < c->segment_size / sizeof *map; i++)
        if (map[i] && visit(c, map[i], first + i * MAP_WORD_BYTES, context))
            return true;
    return false;
}

/* Segment of the first map from `segment` on; the number of segments if there is none. */
static uint32_t next_map(const struct container *c, uint32_t segment)
{
    uint32_t end = atomic_load(&c->segments);
    while (segment < end && segment_kind(home_table(c)[segment]) != SEGMENT_MAP)
        segment++;
    return segment;
}

static bool visit_maps(struct container *c, visitor *visit, void *context)
{
    for (uint32_t i = 0; (i = next_map(c, i)) < atomic_load(&c->segments); i++)
        if (visit_map(c, (uint64_t)i << c->segment_shift, segment_argument(home_table(c)[i]), visit,
                      context))
            return true;
    return false;
}

static int check_maps(const struct container *c)
{
    int result = 0;
    for (uint32_t i = 0; (i = next_map(c, i)) < atomic_load(&c->segments) && result == 0; i++)
        result = check_map(c, (uint64_t)i << c->segment_shift);
    return result;
}

/* `*begun`, true before: an opening must go on with it, because words may have been relocated for good. */
static int move_words(struct txn *t, uint64_t to, bool *begun)
{
    struct container *c = t->c;
    struct moved moved = {.no_memory = false};
    if (!t->engine->rebase) {
        visit_maps(c, relocate_few, NULL);
        return medium_settle(&c->medium);
    }
    int error = 0;
    if (c->pointers_base != to && c->readonly) { /* in private memory */
        visit_maps(c, relocate_few, NULL);
    } else if (c->pointers_base != to) { /* or a process has died after it had done this */
        visit_maps(c, relocate_few, &moved);
        *begun = false;
        error = moved.no_memory
                    ? -ENOMEM
                    : t->engine->rebase(t, moved.runs.items, moved.runs.count, to, begun);
    }
    vector_free(&moved.runs);
    return error;
}

/* Relocate to `pointers_target`; an interrupted relocation may have done a part before. Pointers that the
 * map has lost would stay behind, so check the map's sum first. */
static int relocate(struct txn *t)
{
    struct container *c = t->c;
    struct format_state *state = file_state(c);
    uint64_t to = c->pointers_target;
    if (check_maps(c) != 0 || sums_check_rest(t) != 0)
        return -1;
    int error = publish(c, &state->target, to);
    if (error != 0)
        return cannot_relocate(c, error);
    bool begun = true;
    error = move_words(t, to, &begun);
    if (!begun)
        (void)publish(c, &state->target, 0); /* if this fails, the next opening tries again */
    if (error == 0)
        error = publish(c, &state->base, to);
    if (error == 0)
        error = publish_to_guard(c, &file_guard(c)->base, to);
    if (error == 0)
        error = publish(c, &state->target, 0);
    if (error != 0)
        return cannot_relocate(c, error);
    c->pointers_base = to;
    c->pointers_target = 0;
    return 0;
}

bool pointers_find(struct container *c, uint64_t from, uint64_t size, uint64_t *offset)
{
    struct search s = {.from = from, .size = size};
    bool found = visit_maps(c, find_among_few, &s);
    *offset = s.found;
    return found;
}

int pointers_relocate(struct txn *t)
{
    struct container *c = t->c;
    if (c->pointers_target && relocate(t) != 0)
        return -1;
    if (c->relocates && c->pointers_base != (uintptr_t)c->base) {
        c->pointers_target = (uintptr_t)c->base;
        if (relocate(t) != 0)
            return -1;
    }
    c->relocates = false;
    return 0;
}

int pointers_note_immovable(struct container *c)
{
    if (c->movable == MOVABLE_NEVER || c->vouched || c->readonly)
        return 0;
    /* Again, even if another opening has said so: V2. */
    int error = publish(c, &file_state(c)->movable, MOVABLE_ONCE);
    if (error == 0)
        error = publish(c, &file_guard(c)->movable, MOVABLE_ONCE);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot note that it may no longer be moved", c->path);
    c->movable = MOVABLE_ONCE;
    return 0;
}
