/*
 * Records. First a record is planned: where each part goes, and which lines it has. Then it is written,
 * part by part, and when it counts it is installed in the map. A part fills what is left of its chunk, or
 * LOG_PART_LINES. The next part goes behind it, or to a free chunk. Most records have one part, and fit.
 *
 * A long run of data is cut where pages begin and end, and its pages go to parts of their own (LOG_PAGES).
 * What the cleaner logs is not: on a full disk it must know how much room a chunk's lines take.
 */
#include "txn/log/deltas.h"

#include "base/checksum.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Header, with its runs, and one line of contents. */
#define PART_LINES_MIN 2
/* Lines of a record for which memory is kept between commits. */
#define MOVED_KEPT (UINT64_C(1) << 16)

static struct planned_part *planned(const struct log_engine *k, uint64_t i)
{
    return (struct planned_part *)k->plan.items + i;
}

/* ---- planning -------------------------------------------------------------------------------- */

/* Cuts runs into pieces, so that each piece is in one part. */
struct cutter {
    const struct record_runs *runs;
    struct vector *pieces; /* redo_run() values */
    uint64_t run, skip;    /* how far it has come */
    uint64_t delta;        /* likewise, of the deltas */
    bool makes_pages;
    uint64_t data_count; /* pieces of data */
};

/* Lines of the run that are left. */
static uint64_t lines_left(const struct cutter *at)
{
    return run_count(at->runs->runs[at->run]) - at->skip;
}

/* Lines to the next page that goes to a part of whole pages; UINT64_MAX: none does. */
static uint64_t lines_before_pages(const struct cutter *at)
{
    if (!at->makes_pages || at->run >= at->runs->data_count)
        return UINT64_MAX;
    uint64_t line = run_line(at->runs->runs[at->run]) + at->skip;
    uint64_t before = align_up(line, PM_PAGE_LINES) - line;
    return lines_left(at) >= before + LOG_PAGES_MIN ? before : UINT64_MAX;
}

/* Let a part have the next `n` lines, which are of one run. -ENOMEM */
static int cut(struct planned_part *part, struct cutter *at, uint64_t n)
{
    uint64_t *piece = vector_push(at->pieces, sizeof *piece);
    if (!piece)
        return -ENOMEM;
    bool ends = n == lines_left(at);
    *piece = redo_run(run_line(at->runs->runs[at->run]) + at->skip, n);
    at->data_count += at->run < at->runs->data_count;
    at->run += ends;
    at->skip = ends ? 0 : at->skip + n;
    part->runs++;
    part->lines += (uint32_t)n;
    return 0;
}

static const uint64_t *delta_at(const struct record_runs *runs, uint64_t i)
{
    return (const uint64_t *)runs->deltas->entries.items + i;
}

static uint64_t delta_count(const struct record_runs *runs)
{
    return runs->deltas ? runs->deltas->entries.count : 0;
}

/* Fill what is left of a part with deltas: they come behind all runs. */
static void fill_deltas(struct planned_part *part, struct cutter *at, uint64_t room)
{
    for (; at->delta < delta_count(at->runs); at->delta++) {
        uint32_t words = log_entry_words(*delta_at(at->runs, at->delta));
        if (log_part_head(part->runs + part->delta_words + words) + part->lines > room)
            break;
        part->deltas++;
        part->delta_words += words;
    }
}

/* Fill a part with up to `room` lines, header included. -ENOMEM */
static int fill_part(struct planned_part *part, struct cutter *at, uint64_t room)
{
    int error = 0;
    while (at->run < at->runs->count && log_part_head(part->runs + 1) + part->lines < room &&
           error == 0) {
        uint64_t before = lines_before_pages(at);
        if (before == 0)
            break;
        uint64_t left = room - log_part_head(part->runs + 1) - part->lines;
        error = cut(part, at, min_u64(min_u64(lines_left(at), before), left));
    }
    if (at->run == at->runs->count)
        fill_deltas(part, at, room);
    part->contents = part->line + (uint32_t)log_part_head(part->runs + part->delta_words);
    return error;
}

/* The same for a part of whole pages. */
static int fill_pages(struct planned_part *part, struct cutter *at, uint64_t room)
{
    part->pages = true;
    part->contents = (uint32_t)align_up(part->line + 1, PM_PAGE_LINES);
    return cut(
        part, at,
        align_down(min_u64(lines_left(at), room - (part->contents - part->line)), PM_PAGE_LINES));
}

/* Chunks that the plan has taken go back. */
static void abandon(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->plan.count; i++)
        if (planned(k, i)->line == 1 && !planned(k, i)->is_early)
            log_untake_chunk(t, planned(k, i)->chunk);
}

/* Add a part to the plan: at line `line` of a chunk, or in a fresh chunk if there is no room for `least`
 * lines. */
static struct planned_part *add_part(struct txn *t, uint32_t chunk, uint32_t line, uint32_t least,
                                     int *error)
{
    struct log_engine *k = log_engine_of(t);
    struct planned_part *part = vector_push(&k->plan, sizeof *part);
    *error = part ? 0 : -ENOMEM;
    if (!part)
        return NULL;
    *part = (struct planned_part){.chunk = chunk, .line = line};
    if (chunk_lines(t) - line >= least)
        return part;
    part->line = 1;
    *error = log_take_chunk(t, &part->chunk);
    k->plan.count -= *error != 0;
    return *error == 0 ? part : NULL;
}

/* The early parts come first: what was stored to their lines since is behind them, and wins. -ENOMEM */
static int plan_early(struct txn *t, struct cutter *at, uint64_t *lines)
{
    struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->early.count; i++) {
        const struct early_part *e = (const struct early_part *)k->early.items + i;
        uint64_t *piece = vector_push(at->pieces, sizeof *piece);
        struct planned_part *part = piece ? vector_push(&k->plan, sizeof *part) : NULL;
        if (!part)
            return -ENOMEM;
        *piece = e->run;
        *part = (struct planned_part){.chunk = e->chunk,
                                      .line = e->line,
                                      .contents = log_early_contents(e),
                                      .first_run = at->pieces->count - 1,
                                      .first_line = *lines,
                                      .runs = 1,
                                      .lines = (uint32_t)run_count(e->run),
                                      .pages = true,
                                      .is_early = true,
                                      .sum = e->sum};
        *lines += part->lines;
        at->data_count++;
    }
    return 0;
}

/* Plan part after part, from line `end` of `chunk` on. */
static int plan_parts(struct txn *t, struct record_runs *r, uint32_t chunk, uint32_t end)
{
    struct log_engine *k = log_engine_of(t);
    struct cutter at = {.runs = r, .pieces = &k->pieces, .makes_pages = log_makes_pages(t)};
    uint64_t lines = 0;
    k->pieces.count = 0;
    int error = r->is_transaction ? plan_early(t, &at, &lines) : 0;
    while ((at.run < r->count || at.delta < delta_count(r)) && error == 0) {
        bool pages = lines_before_pages(&at) == 0;
        struct planned_part *part =
            add_part(t, chunk, end, pages ? LOG_PAGES_ROOM : PART_LINES_MIN, &error);
        if (!part)
            break;
        uint64_t room = chunk_lines(t) - part->line;
        part->first_run = k->pieces.count;
        part->first_line = lines;
        part->first_delta = at.delta;
        error = pages ? fill_pages(part, &at, room)
                      : fill_part(part, &at, min_u64(room, LOG_PART_LINES));
        lines += part->lines;
        chunk = part->chunk;
        end = part->contents + part->lines;
    }
    if (error != 0) {
        abandon(t);
        return error;
    }
    r->runs = k->pieces.items;
    r->count = k->pieces.count;
    r->data_count = at.data_count;
    r->lines = lines;
    return 0;
}

int log_plan(struct txn *t, struct record_runs *r)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t lines = chunk_lines(t), chunk = k->open[r->stream];
    uint32_t end = chunk == 0 ? lines : k->chunks[chunk].end;
    k->plan.count = 0;
    k->stream = r->stream;
    uint64_t delta_words = r->deltas ? r->deltas->words : 0,
             head = log_part_head(r->count + delta_words);
    if (head + r->lines > min_u64(lines - end, LOG_PART_LINES) ||
        (r->is_transaction && k->early.count > 0))
        return plan_parts(t, r, chunk, end);
    struct planned_part *part = vector_push(&k->plan, sizeof *part);
    if (!part)
        return -ENOMEM;
    *part = (struct planned_part){.chunk = chunk,
                                  .line = end,
                                  .contents = end + (uint32_t)head,
                                  .runs = (uint32_t)r->count,
                                  .lines = (uint32_t)r->lines,
                                  .deltas = (uint32_t)delta_count(r),
                                  .delta_words = (uint32_t)delta_words};
    return 0;
}

/* ---- lines of a part ------------------------------------------------------------------------- */

static uint32_t first_place(const struct txn *t, const struct planned_part *part)
{
    return place_in(t, part->chunk, part->contents);
}

/* Room for all lines of the record. */
static int make_moved(struct log_engine *k, uint64_t lines)
{
    if (lines <= k->moved_room)
        return 0;
    struct moved_line *moved = realloc(k->moved, lines * sizeof *moved);
    if (!moved)
        return -ENOMEM;
    k->moved = moved;
    k->moved_room = lines;
    return 0;
}

/* Enter the lines of a part's runs. Returns by how much the map's sum changes. */
static uint64_t enter_runs(struct txn *t, const struct planned_part *part, const uint64_t *run,
                           struct moved_line *moved)
{
    uint64_t sum = 0;
    uint32_t place = first_place(t, part);
    for (const uint64_t *end = run + part->runs; run < end; run++) {
        if (!part->is_early)
            log_assert_unmapped(log_engine_of(t), *run);
        sum += log_enter_run(t, moved, *run, place);
        place += run_count(*run);
        moved += run_count(*run);
    }
    return sum;
}

/* The same for its deltas. The lines as a whole stay where they are. */
static uint64_t enter_deltas(struct txn *t, const struct planned_part *part, const uint64_t *delta,
                             struct moved_line *moved)
{
    uint64_t sum = 0;
    uint64_t word = log_table_word(place_in(t, part->chunk, part->line)) + part->runs + 1;
    for (const uint64_t *end = delta + part->deltas; delta < end; delta++, moved++) {
        moved->line = run_line(*delta);
        assert(!log_engine_of(t)->mapped[moved->line / PM_PAGE_LINES]); /* L15 */
        sum += log_enter_delta(t, moved, log_delta_mask(*delta), word);
        word += log_entry_words(*delta);
    }
    return sum;
}

/* The map is ahead of the medium from here on. A line may come twice: two threads may have marked it. */
static int enter_lines(struct txn *t, const struct record_runs *runs)
{
    struct log_engine *k = log_engine_of(t);
    k->is_ahead = true;
    if (make_moved(k, runs->lines + delta_count(runs)) != 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < k->plan.count; i++) {
        const struct planned_part *part = planned(k, i);
        struct moved_line *moved = k->moved + k->moved_count;
        if (part->runs > 0)
            k->map_sum += enter_runs(t, part, runs->runs + part->first_run, moved);
        if (part->deltas > 0)
            k->map_sum +=
                enter_deltas(t, part, delta_at(runs, part->first_delta), moved + part->lines);
        k->moved_count += part->lines + part->deltas;
    }
    return 0;
}

/* The record does not count: the map goes back. */
static void leave_lines(struct txn *t, uint64_t map_sum)
{
    struct log_engine *k = log_engine_of(t);
    while (k->moved_count > 0)
        log_unenter(k, &k->moved[--k->moved_count]);
    k->map_sum = map_sum;
}

void log_install(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    const struct moved_line *moved = k->moved;
    for (uint64_t i = 0; i < k->plan.count; i++) {
        const struct planned_part *part = planned(k, i);
        struct chunk *chunk = &k->chunks[part->chunk];
        log_leave_chunk(t, part->is_early ? LOG_VALUES : k->stream, part->chunk);
        chunk->newest = t->epoch;
        chunk->end = part->contents + part->lines;
        k->checkpoint.logged += chunk->end - part->line;
        log_add_live(k, part->chunk, part->lines * PM_LINE_WORDS + part->delta_words);
        for (uint32_t n = 0; n < part->lines; n++, moved++) {
            k->lines_live += moved->from == 0;
            log_leave_line(t, moved->from, t->epoch);
        }
        for (uint32_t n = 0; n < part->deltas; n++, moved++)
            log_leave_delta(t, moved, t->epoch);
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
    return checksum_mix(checksum(part, log_part_summed(part) * PM_LINE, 0), c->seed, place);
}

/* Copy the lines of a run. Returns the end of the copy. */
static inline char *put_lines(char *to, const char *from, uint64_t run)
{
    const line_image *source = (const line_image *)from + run_line(run);
    line_image *place = (line_image *)to;
    for (uint64_t n = run_count(run); n > 0; n--)
        *place++ = *source++;
    return (char *)place;
}

static char *put_translated(const struct txn *t, char *to, uint64_t run)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    for (uint64_t line = run_line(run), n = run_count(run); n > 0; n--, line++, to += PM_LINE)
        memcpy(to, translation_of_line(t->translation, line, image), PM_LINE);
    return to;
}

/* Lines of the view in home's form. Why it is no race to read them: see tests/tsan.supp. */
static inline char *put_data(const struct txn *t, char *to, uint64_t run)
{
    return t->translation ? put_translated(t, to, run) : put_lines(to, t->c->base, run);
}

/* Put a part's deltas in its table. */
static void put_deltas(const struct txn *t, uint64_t *table, const struct planned_part *part,
                       const struct record_runs *runs)
{
    for (uint64_t i = part->first_delta, end = i + part->deltas; i < end; i++) {
        uint64_t delta = *delta_at(runs, i);
        const char *from = i < runs->data_deltas ? t->c->base : runs->metadata_from;
        table = log_put_delta(table, run_line(delta), log_delta_mask(delta),
                              from + run_line(delta) * PM_LINE);
    }
}

/* Build a part in the stage. */
static struct log_part *build(struct txn *t, const struct planned_part *part,
                              const struct record_runs *runs, const struct log_part *head)
{
    struct log_part *out = (struct log_part *)log_engine_of(t)->stage;
    const uint64_t *run = runs->runs + part->first_run, *end = run + part->runs;
    const uint64_t *data_end = runs->runs + runs->data_count;
    char *to = (char *)out + log_part_head(part->runs + part->delta_words) * PM_LINE;
    memset(to - PM_LINE, 0, PM_LINE); /* behind the table's last word */
    *out = *head;
    uint64_t *table = out->table;
    for (; run < end; run++) {
        *table++ = *run;
        if (runs->contents)
            continue;
        to = run < data_end ? put_data(t, to, *run) : put_lines(to, runs->metadata_from, *run);
    }
    if (part->deltas > 0)
        put_deltas(t, table, part, runs);
    if (runs->contents)
        memcpy(to, runs->contents + part->first_line * PM_LINE, part->lines * PM_LINE);
    return out;
}

/* Whole pages go to the file from where they are, and the header after them. */
static int write_pages(struct txn *t, const struct planned_part *part,
                       const struct record_runs *runs, const struct log_part *head)
{
    uint64_t run = runs->runs[part->first_run], bytes = part->lines * (uint64_t)PM_LINE;
    const char *from = t->c->base + run_line(run) * PM_LINE;
    uint32_t place = place_in(t, part->chunk, part->line);
    struct log_part out = *head;
    uint64_t sum = part->sum;
    int error = 0;
    if (!part->is_early) {
        sum = checksum(from, bytes, 0);
        error = log_store(t, place_in(t, part->chunk, part->contents), from, bytes);
    }
    out.number |= LOG_PAGES;
    out.table[0] = run;
    out.table[1] = sum;
    out.checksum = log_part_sum(t->c, &out, place);
    return error == 0 ? log_store(t, place, &out, sizeof out) : error;
}

static int write_part(struct txn *t, const struct planned_part *part,
                      const struct record_runs *runs, struct log_part *head)
{
    uint32_t place = place_in(t, part->chunk, part->line);
    uint64_t word = log_chunk_word(log_engine_of(t)->generation, 1);
    int error = part->line == 1 ? log_store_header(t, part->chunk, word, head->epoch) : 0;
    if (error != 0)
        return error;
    head->words = (uint16_t)(part->runs + part->delta_words);
    head->lines = (uint16_t)part->lines;
    if (part->pages)
        return write_pages(t, part, runs, head);
    struct log_part *built = build(t, part, runs, head);
    built->checksum = log_part_sum(t->c, built, place);
    return log_store(t, place, built, (log_part_head(head->words) + part->lines) * PM_LINE);
}

/* A write has failed. The parts that it has left are erased: they must not join the next record, which has
 * the same epoch. And all of them may be whole, if what is missing is zero, as the file is there. Then the
 * record would count after a crash. If they cannot be erased now, the next commit, rollback, copy or
 * close tries again. */
static void note_stale(struct log_engine *k)
{
    struct vector erased = k->stale; /* empty; so no memory is needed */
    k->stale = k->plan;
    k->plan = erased;
}

int log_erase_stale(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    static const struct log_part nothing;
    int error = 0;
    if (k->stale.count == 0)
        return 0;
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

void log_note_failed(struct txn *t, uint32_t chunk, uint32_t line)
{
    struct log_engine *k = log_engine_of(t);
    k->plan.count = 1;
    *planned(k, 0) = (struct planned_part){.chunk = chunk, .line = line};
    note_stale(k);
    (void)log_erase_stale(t);
}

int log_write(struct txn *t, const struct record_runs *runs, uint64_t base)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t map_sum = k->map_sum;
    k->moved_count = 0;
    int error = runs->is_transaction ? log_unmap_dropped(t) : 0;
    if (error == 0)
        error = enter_lines(t, runs);
    if (error == 0 && runs->is_transaction)
        error = log_drop_early(t);
    if (runs->is_transaction)
        k->map_sum -= log_dropped_terms(t);
    struct log_part head = log_begin_record(t, base);
    head.map = k->map_sum;
    if (error == 0)
        error = log_erase_stale(t);
    bool begun = error == 0;
    for (uint64_t i = 0; i < k->plan.count && error == 0; i++) {
        head.number = (uint32_t)i | (i + 1 == k->plan.count ? LOG_LAST : 0);
        error = write_part(t, planned(k, i), runs, &head);
    }
    k->is_ahead = false;
    if (error == 0)
        return 0;
    leave_lines(t, map_sum);
    abandon(t);
    if (begun)
        note_stale(k);
    (void)log_erase_stale(t);
    return error;
}
