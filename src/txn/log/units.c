/*
 * Units of the map, and their images in the file. A unit is LOG_UNIT_LINES lines of the container. Its image
 * has all that the map says of them, and which of them are left:
 *
 *   header: checksum, epoch, unit │ places, as runs or as a table │ a bit for each line: left │ deltas
 *
 * Most lines lie in the file as they do in the unit: one behind the other. So an image has *runs* of places,
 * eight bytes each. If these take no fewer words, it has a table of all places. If no line is left, it has no
 * bits. The header says what it has.
 *
 * K1: an image says what the map said after one commit, the checkpoint's, of all lines of its unit. An image
 * of an older checkpoint will do, if the unit has not changed since.
 *
 * K5: If memory is bounded, the map may do without a unit, which is *absent* then. All that is known of it
 * is in the image that the named checkpoint has. So only a unit becomes absent that has not changed since
 * (UNIT_SAVED). It comes back when somebody asks for an entry. Until then K4 keeps the image.
 *
 *                      log_need_unit()
 *         ABSENT ─────────────────────────► present ────────► changed
 *                ◄─────────────────────────         ◄────────
 *                 too much memory is in use          a checkpoint
 */
#include "txn/log/deltas.h"

#include "base/checksum.h"
#include "base/panic.h"

#include <string.h>

uint64_t log_image_sum(const struct container *c, const struct log_image *image, uint64_t place)
{
    return checksum_mix(checksum(image, log_image_lines(image) * PM_LINE, 0), c->seed, place);
}

/* ---- to an image ----------------------------------------------------------------------------- */

/* Returns how many runs the places of a unit are; LOG_TABLE_WORDS: so many, or more. */
static uint64_t put_runs(const struct log_engine *k, const uint32_t *map, uint64_t *words)
{
    uint64_t count = 0;
    uint32_t next = 0; /* the place that the last run would go on with */
    for (uint64_t i = 0; i < LOG_UNIT_LINES && count < LOG_TABLE_WORDS; i++) {
        uint32_t place = base_of(k, map[i]);
        if (place != 0 && place == next)
            words[count - 1] += log_unit_run(0, 1, 0);
        else if (place != 0)
            words[count++] = log_unit_run(i, 1, place);
        next = place == 0 ? 0 : place + 1;
    }
    return count;
}

static void put_table(const struct log_engine *k, const uint32_t *map, uint64_t *words)
{
    uint32_t *places = (uint32_t *)words;
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++)
        places[i] = base_of(k, map[i]);
}

/* Each of these puts a part of an image there, and returns how many words it takes. */
static uint64_t put_places(const struct log_engine *k, const uint32_t *map, struct log_image *to,
                           uint64_t *words)
{
    uint64_t runs = put_runs(k, map, words);
    if (k->packs_images && runs < LOG_TABLE_WORDS) {
        to->packed |= LOG_RUNS;
        to->runs = (uint16_t)runs;
    } else {
        put_table(k, map, words);
    }
    return log_place_words(to);
}

static uint64_t put_left(const struct log_engine *k, const uint64_t *left, struct log_image *to,
                         uint64_t *words)
{
    uint64_t any = 0;
    for (uint64_t i = 0; i < LOG_LEFT_WORDS; i++)
        any |= words[i] = left[i];
    if (k->packs_images && any == 0)
        to->packed |= LOG_NONE_LEFT;
    return log_left_words(to);
}

static uint64_t put_deltas(const struct log_engine *k, const uint32_t *map, uint64_t *words)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++)
        if (has_delta(map[i]))
            words[count++] =
                log_unit_delta(i, delta_of(k, map[i])->mask, word_of(delta_of(k, map[i])));
    return count;
}

/* Whether there is nothing to say of a unit. */
static bool is_empty(const uint32_t *map, const uint64_t *left)
{
    uint64_t any = 0;
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++)
        any |= map[i];
    for (uint64_t i = 0; i < LOG_LEFT_WORDS; i++)
        any |= left[i];
    return any == 0;
}

uint64_t log_image_of(const struct txn *t, uint64_t unit, uint64_t epoch, struct log_image *to)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t map[LOG_UNIT_LINES];
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++)
        map[i] = line_map_at(&k->map, unit * LOG_UNIT_LINES + i);
    const uint64_t *left = k->left + unit * LOG_LEFT_WORDS;
    uint64_t *words = (uint64_t *)(to + 1), count;
    if (is_empty(map, left))
        return 0;
    *to = (struct log_image){.epoch = epoch, .number = (uint32_t)unit};
    count = put_places(k, map, to, words);
    count += put_left(k, left, to, words + count);
    count += put_deltas(k, map, words + count);
    to->words = (uint32_t)count;
    for (; count % PM_LINE_WORDS != 0; count++) /* the last line ends with zeros */
        words[count] = 0;
    return log_image_lines(to);
}

/* ---- from an image --------------------------------------------------------------------------- */

const struct log_image *log_image_at(const struct txn *t, uint32_t place)
{
    uint32_t chunk = place / chunk_lines(t), at = place % chunk_lines(t);
    if (chunk == 0 || chunk >= t->c->chunks || at == 0)
        return NULL;
    uint64_t word = ((const struct log_chunk *)at_place(t, place_in(t, chunk, 0)))->word;
    const struct log_image *image = (const struct log_image *)at_place(t, place);
    uint64_t lines = log_image_lines(image);
    if (!seal_is_valid(word) || !log_chunk_has_images(word) || lines > LOG_IMAGE_LINES ||
        lines > chunk_lines(t) - at || image->words == 0)
        return NULL;
    /* Summed with its checksum field zero: in room of our own, for the file may be read-only. */
    struct log_image *copy = log_engine_of(t)->checkpoint.image;
    memcpy(copy, image, lines * PM_LINE);
    uint64_t sum = copy->checksum;
    copy->checksum = 0;
    bool valid = log_image_sum(t->c, copy, place) == sum;
    copy->checksum = sum;
    return valid ? copy : NULL;
}

/* Whether there may be a piece that takes so many words. Since the checkpoint's commit the chunk may have got
 * other records, or images. The line then has a newer piece. */
static bool has_piece(const struct txn *t, uint64_t word, uint64_t words)
{
    uint64_t place = word / PM_LINE_WORDS, chunk = place / chunk_lines(t);
    uint64_t last = (word + words - 1) / PM_LINE_WORDS;
    return chunk > 0 && chunk < t->c->chunks && last / chunk_lines(t) == chunk &&
           place % chunk_lines(t) != 0;
}

/* Give a line the delta that an image has. False: there cannot be such a delta. */
static bool load_delta(const struct txn *t, uint64_t unit, uint64_t delta)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t mask = log_delta_mask(delta);
    uint64_t word = log_unit_delta_word(delta), line = log_unit_delta_line(delta);
    if (mask == 0 || line >= LOG_UNIT_LINES || !has_piece(t, word, log_count_words(mask)))
        return false;
    line += unit * LOG_UNIT_LINES;
    uint32_t entry = line_map_at(&k->map, line);
    if (entry == 0 || has_delta(entry))
        return false;
    log_place_delta(log_add_delta(k, line), mask, word);
    return true;
}

/* Give `count` lines their places, one behind the other. False: they cannot be there, or lines cannot have
 * any. */
static bool load_places(const struct txn *t, uint64_t line, uint64_t count, uint32_t place)
{
    struct line_map *map = &log_engine_of(t)->map;
    const uint64_t word = place * (uint64_t)PM_LINE_WORDS;
    if (line < LOG_LINE_MIN || !has_piece(t, word, count * PM_LINE_WORDS))
        return false;
    for (uint64_t i = 0; i < count; i++)
        *line_map_entry(map, line + i) = place + (uint32_t)i;
    return true;
}

/* A line has one place, so runs ascend. */
static bool load_runs(const struct txn *t, uint64_t first, const uint64_t *runs, uint64_t count)
{
    for (uint64_t i = 0, end = 0; i < count; i++) {
        uint64_t line = log_unit_run_line(runs[i]), lines = log_unit_run_count(runs[i]);
        if (lines == 0 || line < end || line + lines > LOG_UNIT_LINES ||
            !load_places(t, first + line, lines, log_unit_run_place(runs[i])))
            return false;
        end = line + lines;
    }
    return true;
}

static bool load_table(const struct txn *t, uint64_t first, const uint32_t *places)
{
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++)
        if (places[i] != 0 && !load_places(t, first + i, 1, places[i]))
            return false;
    return true;
}

/* Whether the words of a unit's image are what its header says. */
static bool has_words(const struct log_image *image)
{
    return (image->packed & ~(LOG_RUNS | LOG_NONE_LEFT)) == 0 &&
           log_place_words(image) + log_left_words(image) <= image->words;
}

const struct log_image *log_image_of_named(const struct txn *t, uint64_t unit)
{
    const struct image_place named = log_engine_of(t)->checkpoint.named.units[unit];
    const struct log_image *image = log_image_at(t, named.place);
    bool is_right = image && image->number == unit && (uint32_t)image->checksum == named.sum &&
                    image->epoch <= log_engine_of(t)->checkpoint.named.epoch && has_words(image);
    return is_right ? image : NULL;
}

/* What each chunk has the root says, so nothing is counted here. The map has zeros for an absent unit. `left`
 * has zeros, or what the image has: a unit that leaves the map keeps its bits. */
bool log_load_unit(const struct txn *t, uint64_t unit)
{
    struct log_engine *k = log_engine_of(t);
    const uint64_t first = unit * LOG_UNIT_LINES;
    if (!log_unit_is_absent(k, unit))
        return true;
    const struct log_image *image = log_image_of_named(t, unit);
    if (!image)
        return false;
    const uint64_t *places = (const uint64_t *)(image + 1), *end = places + image->words;
    const uint64_t *left = places + log_place_words(image), *deltas = left + log_left_words(image);
    bool is_valid = image->packed & LOG_RUNS ? load_runs(t, first, places, image->runs)
                                             : load_table(t, first, (const uint32_t *)places);
    line_map_settle(&k->map, first, LOG_UNIT_LINES);
    for (const uint64_t *delta = deltas; delta < end && is_valid; delta++)
        is_valid = load_delta(t, unit, *delta);
    if (!is_valid)
        return false;
    memcpy(k->left + first / 64, left, log_left_words(image) * sizeof *left);
    k->checkpoint.states[unit] &= (uint8_t)~UNIT_ABSENT;
    log_note_unit(t, unit, true);
    return true;
}

/* ---- absent units ---------------------------------------------------------------------------- */

void log_need_absent(const struct txn *t, uint64_t unit)
{
    struct format_state *state = file_state(t->c);
    if (log_load_unit(t, unit))
        return;
    if (!t->c->readonly) /* the next pm_open() reads all of the log */
        (void)medium_publish_word(&t->c->medium, &state->checkpoint, 0);
    panic(t->c->path, log_engine_of(t)->checkpoint.named.units[unit].place * (uint64_t)PM_LINE,
          "this part of a checkpoint is damaged; nothing is lost, for the next pm_open() for "
          "writing reads "
          "all of the log",
          0);
}

void log_drop_unit(struct txn *t, uint64_t unit)
{
    struct log_engine *k = log_engine_of(t);
    const uint64_t first = unit * LOG_UNIT_LINES;
    bool is_data = first >= log_lines_of_metadata(t);
    if (!k->bounded || !is_data || k->checkpoint.states[unit] != UNIT_SAVED) /* K5 */
        return;
    for (uint64_t line = first; line < first + LOG_UNIT_LINES; line++)
        if (has_delta(line_map_at(&k->map, line)))
            log_drop_delta(k, line_map_at(&k->map, line));
    line_map_leave(&k->map, first, LOG_UNIT_LINES);
    line_map_trim(&k->map);
    if (k->checkpoint.named.units[unit].place != 0)
        k->checkpoint.states[unit] |= UNIT_ABSENT;
    log_note_unit(t, unit, false);
}

/* ---- what the map adds up to ----------------------------------------------------------------- */

void log_add_unit(const struct txn *t, uint64_t unit, struct map_total *total)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0, line = unit * LOG_UNIT_LINES; i < LOG_UNIT_LINES; i++, line++) {
        uint32_t entry = line_map_at(&k->map, line), base = base_of(k, entry);
        if (entry == 0)
            continue;
        total->lines++;
        total->sum += entry_term(k, log_line_hash(t->c->seed, line), entry);
        total->live[base >> k->chunk_shift] += base == 0 ? 0 : PM_LINE_WORDS;
        if (has_delta(entry))
            total->live[delta_of(k, entry)->place >> k->chunk_shift] +=
                log_delta_words(delta_of(k, entry));
    }
}

bool log_adds_up(const struct txn *t, const struct map_total *total)
{
    const struct log_engine *k = log_engine_of(t);
    bool same = total->sum == k->map_sum && total->lines == k->lines_live;
    for (uint32_t i = 1; i < t->c->chunks; i++)
        same = same && total->live[i] == k->chunks[i].live;
    return same;
}
