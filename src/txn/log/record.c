/*
 * Records. First a record is planned: where each part goes, and which lines it has. Then it is written,
 * part by part, and when it counts it is installed in the map. A part fills what is left of its chunk, or
 * LOG_PART_LINES. The next part goes behind it, or to a free chunk.
 */
#include "txn/log/log.h"

#include "base/checksum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Header, one line of runs, one line of contents. */
#define PART_LINES_MIN 3
/* Lines of a record for which memory is kept between commits. */
#define MOVED_KEPT (UINT64_C(1) << 16)

static struct planned_part *planned(const struct log_engine *k, uint64_t i)
{
    return (struct planned_part *)k->plan.items + i;
}

/* ---- planning -------------------------------------------------------------------------------- */

/* How far the plan has come in the record's runs. */
struct cursor {
    uint64_t run, skip;
};

/* Fill a part with up to `room` lines, header included. */
static void fill_part(struct planned_part *part, const struct record_runs *runs, struct cursor *at,
                      uint64_t room)
{
    uint64_t count = runs->data_count + runs->metadata_count;
    part->first_run = at->run;
    part->skip = at->skip;
    while (at->run < count && log_part_head(part->runs + 1) + part->lines < room) {
        uint64_t left = run_count(record_run(runs, at->run)) - at->skip;
        uint64_t n = min_u64(left, room - log_part_head(part->runs + 1) - part->lines);
        part->runs++;
        part->lines += (uint32_t)n;
        at->skip += n;
        if (n == left)
            *at = (struct cursor){at->run + 1, 0};
    }
}

/* Chunks that the plan has taken go back. */
static void abandon(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->plan.count; i++)
        if (planned(k, i)->line == 1)
            log_untake_chunk(t, planned(k, i)->chunk);
    k->plan.count = 0;
}

int log_plan(struct txn *t, const struct record_runs *runs)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t lines = chunk_lines(t), chunk = k->current;
    uint32_t end = chunk == 0 ? lines : k->chunks[chunk].end;
    struct cursor at = {0, 0};
    k->plan.count = 0;
    while (at.run < runs->data_count + runs->metadata_count) {
        int error = 0;
        if (lines - end < PART_LINES_MIN) {
            error = log_take_chunk(t, &chunk);
            end = 1;
        }
        struct planned_part *part = error == 0 ? vector_push(&k->plan, sizeof *part) : NULL;
        if (!part) {
            if (error == 0 && end == 1)
                log_untake_chunk(t, chunk);
            abandon(t);
            return error != 0 ? error : -ENOMEM;
        }
        *part = (struct planned_part){.chunk = chunk, .line = end};
        fill_part(part, runs, &at, min_u64(lines - end, LOG_PART_LINES));
        end += (uint32_t)log_part_head(part->runs) + part->lines;
    }
    return 0;
}

/* ---- lines of a part ------------------------------------------------------------------------- */

/* The runs of a part, one after the other: lines [line, line + count) of the container. */
struct piece {
    uint64_t line, count;
    bool is_data;
};

static struct piece piece_of(const struct planned_part *part, const struct record_runs *runs,
                             uint32_t i, uint64_t left)
{
    uint64_t run = record_run(runs, part->first_run + i), skip = i == 0 ? part->skip : 0;
    return (struct piece){.line = run_line(run) + skip,
                          .count = min_u64(run_count(run) - skip, left),
                          .is_data = part->first_run + i < runs->data_count};
}

static uint32_t first_place(const struct txn *t, const struct planned_part *part)
{
    return place_in(t, part->chunk, part->line) + (uint32_t)log_part_head(part->runs);
}

/* Room for all lines of the plan. */
static int make_moved(struct log_engine *k)
{
    uint64_t lines = 0;
    for (uint64_t i = 0; i < k->plan.count; i++)
        lines += planned(k, i)->lines;
    if (lines <= k->moved_room)
        return 0;
    struct moved_line *moved = realloc(k->moved, lines * sizeof *moved);
    if (!moved)
        return -ENOMEM;
    k->moved = moved;
    k->moved_room = lines;
    return 0;
}

/* The map is ahead of the medium from here on. A line may come twice: two threads may have marked it. */
static int enter_lines(struct txn *t, const struct record_runs *runs)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t sum = k->map_sum, seed = t->c->seed;
    k->moved_count = 0;
    if (make_moved(k) != 0)
        return -ENOMEM;
    struct moved_line *moved = k->moved;
    for (uint64_t i = 0; i < k->plan.count; i++) {
        const struct planned_part *part = planned(k, i);
        uint32_t place = first_place(t, part);
        uint64_t left = part->lines;
        for (uint32_t r = 0; r < part->runs; r++) {
            struct piece p = piece_of(part, runs, r, left);
            left -= p.count;
            for (uint64_t line = p.line; line < p.line + p.count; line++, place++, moved++) {
                *moved = (struct moved_line){.line = line, .from = k->map[line]};
                sum += log_map_term(seed, line, place) - log_map_term(seed, line, moved->from);
                k->map[line] = place;
            }
        }
    }
    k->moved_count = (uint64_t)(moved - k->moved);
    k->map_sum = sum;
    return 0;
}

/* The record does not count: the map goes back. */
static void leave_lines(struct txn *t, uint64_t map_sum)
{
    struct log_engine *k = log_engine_of(t);
    while (k->moved_count > 0) {
        const struct moved_line *moved = &k->moved[--k->moved_count];
        k->map[moved->line] = moved->from;
    }
    k->map_sum = map_sum;
}

void log_install(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    const struct moved_line *moved = k->moved;
    for (uint64_t i = 0; i < k->plan.count; i++) {
        const struct planned_part *part = planned(k, i);
        struct chunk *chunk = &k->chunks[part->chunk];
        uint32_t before = k->current;
        k->current = part->chunk;
        chunk->newest = t->epoch;
        chunk->end = part->line + (uint32_t)log_part_head(part->runs) + part->lines;
        if (before != 0 && before != k->current && k->chunks[before].live == 0)
            k->emptied.items[k->emptied.count++] = before;
        chunk->live += part->lines;
        for (uint32_t n = 0; n < part->lines; n++, moved++)
            log_leave_place(t, moved->from, t->epoch);
    }
    if (k->moved_room > MOVED_KEPT) {
        free(k->moved);
        k->moved = NULL;
        k->moved_room = 0;
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

uint64_t log_part_sum(const struct container *c, const struct log_part *part, uint64_t place)
{
    uint64_t lines = log_part_head(part->runs) + part->lines;
    return checksum_mix(checksum(part, lines * PM_LINE, 0), c->seed, place);
}

/* Build a part in the stage. Reads lines of the view; why this is no race: see tests/tsan.supp. */
static struct log_part *build(struct txn *t, const struct planned_part *part,
                              const struct record_runs *runs, const struct log_part *head)
{
    struct log_part *out = (struct log_part *)log_engine_of(t)->stage;
    uint64_t *table = (uint64_t *)(out + 1);
    char *to = (char *)out + log_part_head(part->runs) * PM_LINE;
    uint64_t left = part->lines;
    _Alignas(PM_LINE) char image[PM_LINE];
    *out = *head;
    memset(to - PM_LINE, 0, PM_LINE); /* behind the last run */
    for (uint32_t r = 0; r < part->runs; r++) {
        struct piece p = piece_of(part, runs, r, left);
        left -= p.count;
        table[r] = redo_run(p.line, p.count);
        for (uint64_t line = p.line; line < p.line + p.count; line++, to += PM_LINE)
            memcpy(to,
                   p.is_data ? line_in_home_form(t, line, image)
                             : runs->metadata_from + line * PM_LINE,
                   PM_LINE);
    }
    return out;
}

static int write_part(struct txn *t, const struct planned_part *part,
                      const struct record_runs *runs, struct log_part *head)
{
    uint32_t place = place_in(t, part->chunk, part->line);
    uint64_t word = log_chunk_word(log_engine_of(t)->generation, 1);
    int error = part->line == 1 ? log_store_header(t, part->chunk, word) : 0;
    if (error != 0)
        return error;
    head->runs = (uint16_t)part->runs;
    head->lines = part->lines;
    struct log_part *built = build(t, part, runs, head);
    built->checksum = log_part_sum(t->c, built, place);
    return log_store(t, place, built, (log_part_head(part->runs) + part->lines) * PM_LINE);
}

/* A write has failed. Parts that it has left must not join the next record, which has the same epoch. So
 * the next record erases them first. */
static int note_stale(struct log_engine *k)
{
    for (uint64_t i = 0; i < k->plan.count; i++) {
        struct planned_part *part = vector_push(&k->stale, sizeof *part);
        if (!part)
            return -ENOMEM;
        *part = *planned(k, i);
    }
    return 0;
}

static int erase_stale(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    static const struct log_part nothing;
    int error = 0;
    for (uint64_t i = 0; i < k->stale.count && error == 0; i++) {
        const struct planned_part *part = (struct planned_part *)k->stale.items + i;
        error = log_store(t, place_in(t, part->chunk, part->line), &nothing, sizeof nothing);
    }
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error == 0)
        k->stale.count = 0;
    return error;
}

int log_write(struct txn *t, const struct record_runs *runs, struct sums sums, uint64_t base)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t map_sum = k->map_sum;
    int error = enter_lines(t, runs);
    k->fenced = atomic_load(&t->rounds.durable);
    struct log_part head = {.epoch = t->epoch,
                            .fenced = k->fenced,
                            .map = k->map_sum,
                            .sums = sums_word(sums),
                            .generation = k->generation,
                            .base = log_base(base)};
    if (error == 0 && k->stale.count > 0)
        error = erase_stale(t);
    bool begun = error == 0;
    for (uint64_t i = 0; i < k->plan.count && error == 0; i++) {
        head.number = (uint32_t)i;
        head.is_last = i + 1 == k->plan.count;
        error = write_part(t, planned(k, i), runs, &head);
    }
    if (error == 0)
        return 0;
    leave_lines(t, map_sum);
    if (begun && note_stale(k) != 0) /* no memory to remember them: give the medium up */
        __atomic_store_n(&t->c->medium.failed, error, __ATOMIC_RELEASE);
    abandon(t);
    return error;
}
