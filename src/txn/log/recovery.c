/*
 * Recovery of a log container, in the steps of docs/internals/log.md:
 *
 *   1  Take the map of the checkpoint, if there is one and the options ask for it. Walk each chunk that is
 *      not void: from its beginning, or from where its records ended at the checkpoint.
 *   2  Find the newest record that holds, E.
 *   3  Cut each chunk before its first part above E. Let the newest piece of each line win, but drop lines
 *      that nobody owns (L14). Compare the sum over the map with the one that E's record has (L13).
 *   4  (writers) Take the next incarnation, and make durable what was read. A fence.
 *   5  Seal the chunks. The base becomes E. A fence.
 *
 * Interrupted anywhere, it begins anew. Nothing read from the file is used before its checksum and its
 * range were checked.
 */
#include "txn/log/deltas.h"

#include "base/checksum.h"
#include "base/error.h"
#include "pages/fault.h"
#include "txn/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* So many entries of tables ahead, the map comes to the cache. */
#define ENTRIES_AHEAD 24

/* If home is filled later, few bytes of each chunk are read. The kernel fetches those of so many chunks
 * together. */
#define CHUNKS_AHEAD 128

struct found_part {
    const struct log_part *part;
    uint64_t epoch; /* with `number`, a copy, so that sorting reads no parts */
    uint32_t place, number;
};

struct log_reader {
    struct txn *t;
    struct vector parts; /* struct found_part, sorted by epoch and number */
    uint32_t *ends;      /* for each chunk: lines that are valid, the header included; 0: void */
    bool *cut;           /* for each chunk: parts of it are abandoned */
    uint64_t end;        /* of the last line that any part has */
    uint64_t *bits;      /* of these: */
    struct logged_lines logged; /* lines that the parts have, which follow a checkpoint */
    struct found_checkpoint checkpoint;
    uint64_t certain, newest;
    uint32_t incarnation; /* the largest seen */
};

static const struct found_part *found(const struct log_reader *r, uint64_t i)
{
    return (const struct found_part *)r->parts.items + i;
}

static int no_memory(const struct txn *t)
{
    return pm__fail_system(ENOMEM, "%s: no memory to read the log", t->c->path);
}

static int damaged(const struct txn *t, uint64_t place, const char *what)
{
    return container_damaged(t->c, place * PM_LINE, what);
}

/* ---- step 1 ---------------------------------------------------------------------------------- */

/* Whether a part names lines that a part may have, as many as it says, and its deltas end in the table. The
 * headers and the words that are changed in place are none of these lines. */
static bool table_is_valid(const struct container *c, const struct log_part *part)
{
    const uint64_t *entry = part->table, *end = entry + part->words;
    uint64_t lines = 0;
    for (; entry < end; entry += log_entry_words(*entry)) {
        uint64_t n = max_u64(log_entry_lines(*entry), 1);
        if (run_line(*entry) < LOG_LINE_MIN || run_line(*entry) + n > c->max_size / PM_LINE ||
            log_entry_words(*entry) > (uint64_t)(end - entry) ||
            (log_is_delta(*entry) &&
             (log_delta_mask(*entry) == 0 ||
              *entry != log_delta(run_line(*entry), log_delta_mask(*entry)))))
            return false;
        lines += log_entry_lines(*entry);
    }
    return lines == part->lines;
}

/* Of a part of whole pages: they are pages of data segments, and what they have is right. */
static bool pages_are_valid_at(const struct txn *t, const struct log_part *part, uint32_t place)
{
    return !log_part_has_pages(part) ||
           (run_line(part->table[0]) % PM_PAGE_LINES == 0 &&
            run_line(part->table[0]) >= log_lines_of_metadata(t) &&
            checksum(at_place(t, log_part_contents(part, place)), part->lines * (uint64_t)PM_LINE,
                     0) == part->table[1]);
}

/* Lines of a valid part at `place`, in a chunk with `room` lines left; 0: there is none. */
static uint64_t part_lines(const struct txn *t, uint32_t place, uint64_t room)
{
    const struct log_part *part = (const struct log_part *)at_place(t, place);
    uint64_t lines = log_part_lines(part, place, room);
    struct log_part head = *part;
    if (lines == 0)
        return 0;
    /* Summed with its checksum field zero: in the stage, for the file may be read-only. */
    struct log_part *copy = (struct log_part *)log_engine_of(t)->stage;
    memcpy(copy, part, log_part_summed(part) * PM_LINE);
    copy->checksum = 0;
    return head.checksum == log_part_sum(t->c, copy, place) && head.epoch > 0 &&
                   head.epoch <= EPOCH_MAX && head.fenced < head.epoch &&
                   table_is_valid(t->c, part) && pages_are_valid_at(t, part, place)
               ? lines
               : 0;
}

/* A damaged part hides the parts behind it. What these call durable was durable, whatever became of their own
 * records. So a fenced record that has rotted is not taken for a torn tail (L2). */
static void look_behind(struct log_reader *r, uint32_t first, uint32_t at, uint32_t generation)
{
    for (uint32_t lines = chunk_lines(r->t); at < lines; at++) {
        const struct log_part *part = (const struct log_part *)at_place(r->t, first + at);
        if (part->generation == generation && part_lines(r->t, first + at, lines - at) > 0)
            r->certain = max_u64(r->certain, part->fenced);
    }
}

/* The first line of a chunk whose record the checkpoint does not have (K3). If the chunk was not begun again,
 * records were added behind its end only. */
static uint32_t first_unread(const struct log_reader *r, uint32_t chunk, uint64_t begun)
{
    const struct found_checkpoint *found = &r->checkpoint;
    bool is_same = begun != 0 && begun <= found->epoch && chunk < found->chunks;
    return is_same ? (uint32_t)max_u64(found->ends[chunk], 1) : 1;
}

/* A chunk with images stays if the checkpoint has any of them. */
static int walk_images(struct log_reader *r, uint32_t chunk)
{
    const struct log_engine *k = log_engine_of(r->t);
    r->ends[chunk] = log_has_images(k, chunk) ? (uint32_t)LOG_END_IMAGES : 0;
    return 0;
}

static int walk(struct log_reader *r, uint32_t chunk)
{
    struct txn *t = r->t;
    const struct log_chunk *header = (const struct log_chunk *)at_place(t, place_in(t, chunk, 0));
    uint32_t first = place_in(t, chunk, 0), lines = chunk_lines(t);
    uint32_t at = first_unread(r, chunk, header->begun);
    uint64_t word = header->word;
    if (word == 0)
        return 0;
    bool has_images = log_chunk_has_images(word) && log_engine_of(t)->is_checkpointed;
    if (!seal_is_valid(word) || (log_chunk_end(word) > lines && !has_images) ||
        log_chunk_end(word) == 0)
        return damaged(t, first, "the header of a chunk of the log is damaged");
    /* Behind the checkpoint's end of a chunk the next record is newer than the checkpoint. */
    uint32_t generation = log_chunk_generation(word), number = UINT32_MAX;
    uint64_t epoch = at > 1 ? r->checkpoint.epoch : 0, n;
    r->incarnation = (uint32_t)max_u64(r->incarnation, generation);
    if (has_images)
        return walk_images(r, chunk);
    for (; at < lines && (n = part_lines(t, first + at, lines - at)) > 0; at += (uint32_t)n) {
        const struct log_part *part = (const struct log_part *)at_place(t, first + at);
        bool follows = part->epoch > epoch || (part->epoch == epoch && log_part_number(part) > number);
        if (!follows || (at >= log_chunk_end(word) && part->generation != generation)) /* L3 */
            break;
        epoch = part->epoch;
        number = log_part_number(part);
        r->certain = max_u64(r->certain, part->fenced); /* L2 */
        t->recovery.bytes += n * PM_LINE;
        if (epoch <= r->checkpoint.epoch) /* of an earlier life of the chunk: the map knows it */
            continue;
        struct found_part *f = vector_push(&r->parts, sizeof *f);
        if (!f)
            return no_memory(t);
        *f = (struct found_part){part, epoch, first + at, number};
    }
    if (at < log_chunk_end(word))
        return damaged(t, first + at, "a commit record is damaged");
    look_behind(r, first, at, generation);
    r->ends[chunk] = at;
    return 0;
}

/* ---- step 2 ---------------------------------------------------------------------------------- */

static int compare_parts(const void *a, const void *b)
{
    const struct found_part *x = a, *y = b;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Whether the record whose parts begin at the i-th is whole. */
static bool is_whole(const struct log_reader *r, uint64_t i)
{
    uint64_t epoch = found(r, i)->epoch;
    for (uint32_t number = 0; i < r->parts.count; i++, number++) {
        if (found(r, i)->epoch != epoch || found(r, i)->number != number)
            return false;
        if (found(r, i)->part->number & LOG_LAST)
            return true;
    }
    return false;
}

/* L2: above `certain` epochs count while each is whole. */
static void find_newest(struct log_reader *r)
{
    uint64_t i = 0;
    if (r->parts.count > 0)
        qsort(r->parts.items, r->parts.count, sizeof(struct found_part), compare_parts);
    r->newest = r->certain;
    while (i < r->parts.count && found(r, i)->epoch <= r->newest)
        i++;
    while (i < r->parts.count && found(r, i)->epoch == r->newest + 1 && is_whole(r, i)) {
        r->newest++;
        while (i < r->parts.count && found(r, i)->epoch == r->newest)
            i++;
    }
}

/* ---- step 3 ---------------------------------------------------------------------------------- */

static void cut_chunks(struct log_reader *r)
{
    for (uint64_t i = r->parts.count; i-- > 0 && found(r, i)->epoch > r->newest;) {
        uint32_t place = found(r, i)->place, lines = chunk_lines(r->t);
        r->ends[place / lines] = (uint32_t)min_u64(r->ends[place / lines], place % lines);
        r->cut[place / lines] = true;
        r->parts.count = i;
    }
}

/* In a container of FORMAT_LOG_KEEPING: forget the chunks whose parts are of older generations than a record
 * with LOG_ANEW. They become void with the seals. */
static int drop_forgotten(struct log_reader *r)
{
    uint32_t least = 0, lines = chunk_lines(r->t);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < r->parts.count && !log_engine_of(r->t)->drops; i++)
        if (found(r, i)->part->number & LOG_ANEW)
            least = (uint32_t)max_u64(least, found(r, i)->part->generation);
    for (uint64_t i = 0; i < r->parts.count; i++)
        if (found(r, i)->part->generation < least)
            r->ends[found(r, i)->place / lines] = 0;
        else
            ((struct found_part *)r->parts.items)[kept++] = *found(r, i);
    r->parts.count = kept;
    for (uint64_t i = 0; i < kept; i++)
        if (r->ends[found(r, i)->place / lines] == 0)
            return damaged(r->t, found(r, i)->place, "a chunk of the log has records of two lives");
    return 0;
}

/* For the report: pages that what was committed since the base has touched, each entry by itself. */
static uint64_t pages_in(const struct log_part *part)
{
    const uint64_t *entry = part->table, *end = entry + part->words;
    uint64_t pages = 0;
    for (; entry < end; entry += log_entry_words(*entry)) {
        uint64_t n = max_u64(log_entry_lines(*entry), 1);
        pages += (run_line(*entry) + n - 1) / PM_PAGE_LINES - run_line(*entry) / PM_PAGE_LINES + 1;
    }
    return pages;
}

/* A piece of so many words at `place` counts no more. 0: none did. A chunk may be empty many times on the
 * way. log_chunks_found() lists those that are empty in the end. */
static void leave_place(struct txn *t, uint64_t place, uint32_t words, uint64_t epoch)
{
    struct chunk *chunk = &log_engine_of(t)->chunks[place >> log_engine_of(t)->chunk_shift];
    if (place == 0)
        return;
    log_engine_of(t)->words_live -= words;
    if ((chunk->live -= words) == 0)
        chunk->emptied = epoch;
}

/* Goes through the entries of all parts. */
struct cursor {
    uint64_t part;
    const uint64_t *entry, *end;
};

/* The line of the next entry; UINT64_MAX: there is none. */
static uint64_t next_line(const struct log_reader *r, struct cursor *at)
{
    while (at->entry == at->end) {
        if (at->part == r->parts.count)
            return UINT64_MAX;
        const struct log_part *part = found(r, at->part++)->part;
        at->entry = part->table;
        at->end = part->table + part->words;
    }
    uint64_t line = run_line(*at->entry);
    at->entry += log_entry_words(*at->entry);
    return line;
}

/* Records have lines from all over the container, so each access to the map would wait for memory. These are
 * ENTRIES_AHEAD in front of the pass that changes the map, and for its groups twice as far. */
struct ahead {
    const struct log_reader *r;
    struct cursor groups, blocks;
};

static void fetch_groups(struct ahead *a)
{
    uint64_t line = next_line(a->r, &a->groups);
    if (line != UINT64_MAX)
        line_map_fetch_group(&log_engine_of(a->r->t)->map, line);
}

static void fetch_next(struct ahead *a)
{
    uint64_t line = next_line(a->r, &a->blocks);
    if (line != UINT64_MAX)
        line_map_fetch(&log_engine_of(a->r->t)->map, line);
    fetch_groups(a);
}

static void move_line(struct txn *t, uint64_t line, uint32_t place, uint64_t epoch)
{
    struct log_engine *k = log_engine_of(t);
    struct moved_line moved = {.line = line};
    log_set_left(t, line, false); /* the checkpoint may have called it left */
    k->map_sum += log_enter_line(t, &moved, place);
    const uint32_t before = moved.from;
    leave_place(t, base_of(k, before), PM_LINE_WORDS, epoch);
    if (has_delta(before)) {
        leave_place(t, delta_of(k, before)->place, log_delta_words(delta_of(k, before)), epoch);
        log_drop_delta(k, before);
    }
    k->lines_live += before == 0;
    log_add_live(k, place >> k->chunk_shift, PM_LINE_WORDS);
}

/* A line may have a delta here and nothing else: what a later commit has logged as a whole may be void. */
static void move_delta(struct txn *t, uint64_t delta, uint64_t word, uint64_t epoch)
{
    struct moved_line moved = {.line = run_line(delta)};
    log_set_left(t, moved.line, false);
    log_engine_of(t)->map_sum += log_enter_delta(t, &moved, log_delta_mask(delta), word);
    if (has_delta(moved.from))
        leave_place(t, moved.delta.place, log_delta_words(&moved.delta), epoch);
    log_engine_of(t)->lines_live += moved.from == 0;
    log_add_live(log_engine_of(t), (uint32_t)(word / PM_LINE_WORDS / chunk_lines(t)),
                 log_entry_words(delta));
}

static void move_run(struct txn *t, uint64_t run, uint32_t *place, uint64_t epoch)
{
    for (uint64_t line = run_line(run), end = line + run_count(run); line < end; line++)
        move_line(t, line, (*place)++, epoch);
    if (run_count(run) >= LINE_MAP_GROUP)
        line_map_settle(&log_engine_of(t)->map, run_line(run), run_count(run));
}

static void move_lines(struct txn *t, const struct found_part *f, struct ahead *ahead)
{
    const uint64_t *table = f->part->table, *end = table + f->part->words;
    uint32_t place = (uint32_t)log_part_contents(f->part, f->place);
    for (const uint64_t *entry = table; entry < end; entry += log_entry_words(*entry)) {
        fetch_next(ahead);
        if (log_is_delta(*entry))
            move_delta(t, *entry, log_table_word(f->place) + 1 + (uint64_t)(entry - table),
                       f->epoch);
        else
            move_run(t, *entry, &place, f->epoch);
    }
}

/* Lines from this one on that lie together in a chunk, whole pages of them. */
static uint64_t lines_together(const struct txn *t, uint64_t line, uint64_t end)
{
    const struct line_map *map = &log_engine_of(t)->map;
    const uint32_t place = line_map_at(map, line);
    const uint64_t most = min_u64(end - line, chunk_lines(t) - place % chunk_lines(t));
    return place % PM_PAGE_LINES != 0
               ? 0
               : align_down(line_map_together(map, line, most), PM_PAGE_LINES);
}

/* Map the pages of parts of whole pages, as far as all their lines are the newest. If that fails, home gets
 * them. No other part has so many lines together. Pages of absent units come one by one, as any others. */
static void map_pages(struct txn *t)
{
    const uint64_t end = container_bytes(t->c) / PM_LINE;
    for (uint64_t line = log_lines_of_metadata(t), n; line < end; line += n) {
        n = LOG_UNIT_LINES - line % LOG_UNIT_LINES;
        if (log_unit_is_absent(log_engine_of(t), line / LOG_UNIT_LINES))
            continue;
        n = lines_together(t, line, end);
        if (n >= LOG_PAGES_MIN)
            (void)log_map_pages(t, (uint32_t)(line / PM_PAGE_LINES), (uint32_t)(n / PM_PAGE_LINES));
        n = max_u64(n, PM_PAGE_LINES);
    }
}

/* L14. The words that say who owns what are read from the log, for home is not there yet. */
static int drop_lines(struct log_reader *r)
{
    struct txn *t = r->t;
    struct log_engine *k = log_engine_of(t);
    uint32_t segments = atomic_load(&t->c->segments);
    for (uint32_t i = t->c->meta_segments; i < segments && k->drops; i++) {
        if (log_find_unowned(t, i, &r->logged) != 0)
            return no_memory(t);
        if (k->dropped.count == 0)
            continue;
        k->map_sum -= log_dropped_terms(t);
        log_drop_lines(t, r->newest);
        const uint64_t units = t->c->segment_size / PM_LINE / LOG_UNIT_LINES;
        for (uint64_t unit = i * units; unit < (i + 1) * units; unit++)
            log_drop_unit(t, unit); /* if nothing behind the checkpoint has changed it */
    }
    return 0;
}

static int grow_home(struct txn *t, uint32_t segments)
{
    uint32_t before = atomic_load(&t->c->segments);
    int error = segments > before ? container_grow_home(t->c, segments - before) : 0;
    return error == 0 ? 0
                      : pm__fail_system(-error, "%s: cannot map room in memory for its contents",
                                        t->c->path);
}

static void find_end(struct log_reader *r)
{
    r->end = 0;
    for (uint64_t i = 0; i < r->parts.count; i++) {
        const struct log_part *part = found(r, i)->part;
        const uint64_t *entry = part->table, *last = entry + part->words;
        for (; entry < last; entry += log_entry_words(*entry))
            r->end = max_u64(r->end, run_line(*entry) + max_u64(log_entry_lines(*entry), 1));
    }
}

/* Give home memory for all lines that have a piece. */
static int make_home(struct log_reader *r)
{
    uint64_t segments = divide_up(r->end * PM_LINE, r->t->c->segment_size);
    return grow_home(r->t, (uint32_t)max_u64(segments, r->checkpoint.segments));
}

/* And for all segments that are in use: some may have no line that anybody stored to. */
static int complete_home(struct txn *t)
{
    uint32_t end = t->c->segments_max;
    while (end > t->c->meta_segments && home_table(t->c)[end - 1] == 0)
        end--;
    return grow_home(t, end);
}

/* Note which lines the records behind the checkpoint have. -ENOMEM */
static int find_logged(struct log_reader *r)
{
    r->logged.count = r->end;
    r->logged.bits = r->bits = calloc(r->logged.count / 64 + 1, sizeof *r->bits);
    if (!r->bits)
        return -ENOMEM;
    for (uint64_t i = 0; i < r->parts.count; i++) {
        const uint64_t *entry = found(r, i)->part->table, *end = entry + found(r, i)->part->words;
        for (; entry < end; entry += log_entry_words(*entry))
            for (uint64_t n = 0, line = run_line(*entry); n < max_u64(log_entry_lines(*entry), 1);
                 n++)
                r->bits[(line + n) / 64] |= UINT64_C(1) << (line + n) % 64;
    }
    return 0;
}

static bool is_logged(const struct log_reader *r, uint64_t unit)
{
    return log_is_any_logged(&r->logged, unit * LOG_UNIT_LINES, (unit + 1) * LOG_UNIT_LINES);
}

/* Bring units [first, end) to the map that the checkpoint has. -EBADMSG: one is damaged */
static int load_units(const struct txn *t, uint64_t first, uint64_t end)
{
    bool valid = true;
    end = min_u64(end, log_engine_of(t)->checkpoint.units);
    for (uint64_t unit = first; unit < end && valid; unit++)
        valid = log_load_unit(t, unit);
    return valid ? 0 : -EBADMSG;
}

/* The same for those units of a segment that recovery needs. Units with lines of records stay. Others are
 * needed only to drop lines, and leave the map again. -errno */
static int load_segment(struct log_reader *r, uint32_t segment)
{
    struct txn *t = r->t;
    const struct vector *runs = &log_engine_of(t)->dropped;
    const uint64_t units = t->c->segment_size / PM_LINE / LOG_UNIT_LINES, first = segment * units;
    int error = log_find_concerned(t, segment, &r->logged);
    for (uint64_t i = 0; i < runs->count && error == 0; i++) {
        const uint64_t run = ((const uint64_t *)runs->items)[i],
                       end = run_line(run) + run_count(run);
        error = load_units(t, run_line(run) / LOG_UNIT_LINES, divide_up(end, LOG_UNIT_LINES));
    }
    for (uint64_t unit = first; unit < first + units && error == 0; unit++)
        if (is_logged(r, unit))
            error = load_units(t, unit, unit + 1);
        else
            log_drop_unit(t, unit);
    return error;
}

/* Look at the units that recovery needs, before anything changes. Later an image that is damaged ends the
 * process. If memory is not bounded, all units are there already. -EBADMSG: one is damaged; -ENOMEM */
static int load_needed(struct log_reader *r)
{
    const struct container *c = r->t->c;
    const uint64_t lines = log_engine_of(r->t)->checkpoint.units * LOG_UNIT_LINES;
    const uint32_t segments = (uint32_t)divide_up(lines * PM_LINE, c->segment_size);
    int error = find_logged(r);
    if (error != 0 || !log_engine_of(r->t)->bounded)
        return error;
    error = load_units(r->t, 0, log_lines_of_metadata(r->t) / LOG_UNIT_LINES);
    for (uint32_t i = c->meta_segments; i < segments && error == 0; i++)
        error = load_segment(r, i);
    return error;
}

/* Bring the map to what the parts say. */
static int build_map(struct log_reader *r)
{
    struct txn *t = r->t;
    struct log_engine *k = log_engine_of(t);
    struct ahead ahead = {.r = r};
    for (uint32_t i = 1; i < t->c->chunks; i++) {
        k->chunks[i].end = r->ends[i];
        k->chunks[i].newest = r->checkpoint.epoch;
    }
    if (r->checkpoint.epoch != 0 && r->parts.count == 0)
        return 0;
    for (int i = 0; i < ENTRIES_AHEAD; i++)
        fetch_groups(&ahead);
    for (int i = 0; i < ENTRIES_AHEAD; i++)
        fetch_next(&ahead);
    for (uint64_t i = 0; i < r->parts.count; i++) {
        k->chunks[found(r, i)->place / chunk_lines(t)].newest = found(r, i)->epoch;
        move_lines(t, found(r, i), &ahead);
        if (found(r, i)->epoch > seal_payload(file_state(t->c)->base_epoch))
            t->recovery.pages += pages_in(found(r, i)->part);
    }
    return drop_lines(r);
}

/* Whether all lines that count are in records. What a checkpoint counts on may have lost its header. */
static bool is_in_records(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint32_t i = 1; i < t->c->chunks; i++)
        if (k->chunks[i].live > 0 && (log_has_images(k, i) || k->chunks[i].end <= 1))
            return false;
    return true;
}

/* Whether the newest record says that the map is so. If no record is behind the checkpoint, the map is as the
 * checkpoint says. A new container has neither. */
static bool is_complete(const struct log_reader *r, const struct found_part *last)
{
    if (last)
        return last->epoch == r->newest && last->part->map == log_engine_of(r->t)->map_sum;
    return r->newest <= EPOCH_CREATED || r->newest == r->checkpoint.epoch;
}

/* Pointers mean the addresses that the newest record says. */
static int take_base(struct log_reader *r, const struct found_part *last, uint64_t where)
{
    struct txn *t = r->t;
    if (!last && r->checkpoint.epoch == 0)
        return 0;
    uint64_t base = (uint64_t)(last ? last->part->base : r->checkpoint.base) << ARENA_SLOT_SHIFT;
    if (base == 0 || (base != t->c->pointers_base && base != t->c->pointers_target))
        return container_damaged(
            t->c, where, "the last commit record is for other addresses than the state page");
    t->c->pointers_base = base;
    return 0;
}

static int build_home(struct log_reader *r)
{
    struct txn *t = r->t;
    if (make_home(r) != 0 || build_map(r) != 0)
        return -1;
    const struct found_part *last = r->parts.count > 0 ? found(r, r->parts.count - 1) : NULL;
    uint64_t where = last ? last->place * (uint64_t)PM_LINE : FORMAT_STATE;
    if (recovery_check_fenced(t, r->newest, where) != 0)
        return -1;
    /* The newest record has live lines, so its chunk is never void. */
    if (!is_complete(r, last) || !is_in_records(t))
        return pm__fail_at(t->c->path, where, EBADMSG,
                           "the log lacks pieces that the commit of epoch %" PRIu64
                           " counts on: the medium has lost a part of it, or has an old copy; restore "
                           "the file from a backup",
                           r->newest);
    map_pages(t);
    log_fill_home(t);
    return complete_home(t) == 0 ? take_base(r, last, where) : -1;
}

/* ---- steps 4 and 5 --------------------------------------------------------------------------- */

int log_publish_state(struct txn *t, uint64_t epoch, uint64_t mark)
{
    struct format_state *state = file_state(t->c);
    __atomic_store_n(&state->mark, mark, __ATOMIC_RELAXED);
    __atomic_store_n(&state->base_epoch, seal(epoch), __ATOMIC_RELAXED);
    return medium_publish(&t->c->medium, state, offsetof(struct format_state, unused));
}

/* If only the process has died, the newest records may be in the cache only (L7). A chunk that begins with
 * one of them was new. Then its header may be there too. */
static int make_durable(struct log_reader *r)
{
    struct txn *t = r->t;
    struct format_state *state = file_state(t->c);
    int error = medium_publish_word(&t->c->medium, &state->incarnation, seal(r->incarnation));
    if (error == 0 && r->checkpoint.epoch == 0 && state->checkpoint != 0) /* K4: its images will be void */
        error = medium_publish_word(&t->c->medium, &state->checkpoint, 0);
    for (uint64_t i = r->parts.count; i-- > 0 && found(r, i)->epoch > r->certain && error == 0;) {
        uint32_t place = found(r, i)->place;
        uint64_t lines = log_part_lines(found(r, i)->part, place, chunk_lines(t));
        if (place % chunk_lines(t) == 1) { /* with the chunk's header */
            place--;
            lines++;
        }
        error = medium_rewrite(&t->c->medium, at_place(t, place), lines * PM_LINE);
    }
    return error == 0 ? medium_fence(&t->c->medium) : error;
}

/* The chunk that the next record goes on with: of those with live lines the one with the most room. */
static uint32_t choose_open(const struct log_reader *r)
{
    const struct chunk *chunks = log_engine_of(r->t)->chunks;
    uint32_t best = 0;
    for (uint32_t i = 1; i < r->t->c->chunks; i++)
        if (r->ends[i] > 1 && r->ends[i] != LOG_END_IMAGES && chunks[i].live > 0 &&
            (best == 0 || r->ends[i] < r->ends[best]))
            best = i;
    return best;
}

/* The word that a chunk's header needs. A chunk that is sealed where it ends stays so. Two kinds do not: the
 * open chunk, and a chunk with abandoned parts behind its end, for these would count again. */
static uint64_t seal_of(const struct log_reader *r, uint32_t chunk, uint64_t word)
{
    uint32_t end = r->ends[chunk];
    if (end <= 1)
        return 0;
    bool stays = log_chunk_end(word) == end && !r->cut[chunk] && !log_is_open(log_engine_of(r->t), chunk);
    return stays ? word : log_chunk_word(r->incarnation, end);
}

/* A seal that stays may be in the cache only, unless the file was closed since (L7). On a disk each header is
 * a page to write. */
static int seal_chunks(struct log_reader *r)
{
    struct txn *t = r->t;
    const bool was_closed = file_state(t->c)->mark == MARK_CLOSED;
    int error = 0;
    for (uint32_t i = 1; i < t->c->chunks && error == 0; i++) {
        struct log_chunk *chunk = (struct log_chunk *)at_place(t, place_in(t, i, 0));
        uint64_t word = seal_of(r, i, chunk->word), begun = word == 0 ? 0 : chunk->begun;
        if (chunk->word != word || chunk->begun != begun)
            error = log_store_header(t, i, word, begun);
        else if (!was_closed)
            error = medium_rewrite(&t->c->medium, chunk, sizeof *chunk);
    }
    if (error == 0)
        error = log_publish_state(t, r->newest, t->c->mark_open);
    return error == 0 ? medium_fence(&t->c->medium) : error;
}

static int begin_incarnation(struct log_reader *r)
{
    struct txn *t = r->t;
    struct log_engine *k = log_engine_of(t);
    uint64_t last = max_u64(r->incarnation, seal_payload(file_state(t->c)->incarnation));
    if (last == UINT32_MAX) /* L4: none is left */
        return pm__fail_at(t->c->path, FORMAT_STATE + offsetof(struct format_state, incarnation), EBADMSG,
                           "opened for writing as often as a log container can be, if the number there is "
                           "not damaged; copy what it has to a new container, or restore the file from a "
                           "backup");
    r->incarnation = (uint32_t)last + 1;
    k->open[LOG_PROGRAM] = choose_open(r);
    int error = make_durable(r);
    if (error == 0)
        error = seal_chunks(r);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot write the seals of its log", t->c->path);
    k->generation = r->incarnation;
    log_chunks_found(t);
    /* If the reserve is not whole, the rest of it is in this chunk (commit.c). */
    if (k->free.count + k->emptied.count < LOG_RESERVE) {
        k->open[LOG_CLEANER] = k->open[LOG_PROGRAM];
        k->open[LOG_PROGRAM] = 0;
    }
    return 0;
}

/* ---- while it is open ------------------------------------------------------------------------ */

static int check_chunk(const struct txn *t, uint32_t chunk)
{
    if (log_has_images(log_engine_of(t), chunk))
        return 0;
    uint32_t first = place_in(t, chunk, 0), at = 1, end = log_engine_of(t)->chunks[chunk].end;
    uint64_t word = ((const struct log_chunk *)at_place(t, first))->word, n;
    if (end > 0 && (word == 0 || !seal_is_valid(word)))
        return damaged(t, first, "the header of a chunk of the log is damaged");
    for (; at < end; at += (uint32_t)n)
        if ((n = part_lines(t, first + at, end - at)) == 0)
            return damaged(t, first + at, "a commit record is damaged");
    return 0;
}

int log_check(struct txn *t)
{
    for (uint32_t i = 1; i < t->c->chunks; i++)
        if (check_chunk(t, i) != 0)
            return -1;
    return log_check_map(t) == 0 ? log_check_owners(t) : -1;
}

/* ---- from beginning to end ------------------------------------------------------------------- */

/* The headers, and what is behind the ends at the checkpoint: seldom more than a page. */
static void fetch_chunks(const struct log_reader *r, uint32_t first, uint32_t end)
{
    const struct txn *t = r->t;
    for (uint32_t i = first; i < min_u64(end, r->checkpoint.chunks); i++) {
        const uint32_t line = r->checkpoint.ends[i], lines = chunk_lines(t) - line;
        map_fetch(at_place(t, place_in(t, i, 0)), PM_LINE);
        if (line > 0 && lines > 0)
            map_fetch(at_place(t, place_in(t, i, line)), lines * (size_t)PM_LINE);
    }
}

static int read_chunks(struct log_reader *r)
{
    const bool is_sparse = r->checkpoint.epoch != 0 && log_engine_of(r->t)->bounded;
    if (is_sparse) {
        map_read_singly(r->t->c->file, container_file_bytes(r->t->c));
        fetch_chunks(r, 1, CHUNKS_AHEAD);
    }
    for (uint32_t i = 1; i < r->t->c->chunks; i++) {
        if (is_sparse && i % CHUNKS_AHEAD == 1)
            fetch_chunks(r, i - 1 + CHUNKS_AHEAD, i - 1 + 2 * CHUNKS_AHEAD);
        if (walk(r, i) != 0)
            return -1;
    }
    return 0;
}

/* Steps 1 and 2, and the cut. */
static int read_log(struct log_reader *r)
{
    struct txn *t = r->t;
    t->recovery.bytes = 0;
    r->parts.count = 0;
    memset(r->ends, 0, t->c->chunks * sizeof *r->ends);
    memset(r->cut, 0, t->c->chunks * sizeof *r->cut);
    r->certain = max_u64(seal_payload(file_state(t->c)->base_epoch), r->checkpoint.epoch);
    if (read_chunks(r) != 0)
        return -1;
    find_newest(r);
    cut_chunks(r);
    int result = drop_forgotten(r);
    find_end(r);
    return result;
}

static int recover_from(struct log_reader *r)
{
    struct txn *t = r->t;
    const struct format_state *state = file_state(t->c);
    if (recovery_check_state(t) != 0)
        return -1;
    if (!seal_is_valid(state->incarnation) || seal_payload(state->incarnation) > UINT32_MAX)
        return container_damaged(t->c, FORMAT_STATE + offsetof(struct format_state, incarnation),
                                 "the number of its openings is damaged");
    t->sums = sums_of_word(state->sums);
    if (log_engine_of(t)->checkpoint.interval != 0 && log_load_checkpoint(t, &r->checkpoint) != 0)
        return no_memory(t);
    if (read_log(r) != 0)
        return -1;
    int error = r->checkpoint.epoch == 0 ? 0 : load_needed(r);
    if (error == -ENOMEM)
        return no_memory(t);
    if (error != 0) {
        log_forget_checkpoint(t, &r->checkpoint);
        r->logged.bits = NULL;
        if (read_log(r) != 0)
            return -1;
    }
    t->recovery.recovered = state->mark != MARK_CLOSED;
    t->epoch = r->newest + 1;
    if (build_home(r) != 0)
        return -1;
    for (uint32_t i = 1; i < t->c->chunks; i++)
        log_engine_of(t)->chunks[i].end = r->ends[i] > 1 ? r->ends[i] : 0;
    log_engine_of(t)->checkpoint.logged = t->recovery.bytes / PM_LINE;
    return t->c->readonly ? 0 : begin_incarnation(r);
}

int log_recover(struct txn *t)
{
    struct log_reader r = {.t = t,
                           .ends = calloc(t->c->chunks, sizeof *r.ends),
                           .cut = calloc(t->c->chunks, sizeof *r.cut)};
    int error = log_tables_open(t);
    int result = r.ends && r.cut && error == 0 ? 0 : no_memory(t);
    if (result == 0 && log_engine_of(t)->bounded) /* the words of modules, for instance, are read next */
        result = fault_install(t->c->path);
    if (result == 0)
        result = recover_from(&r);
    error = errno;
    free(r.ends);
    free(r.cut);
    free(r.bits);
    free(r.checkpoint.ends);
    vector_free(&r.parts);
    errno = error;
    return result;
}
