/*
 * Units of the map, and their images in the file. A unit is LOG_UNIT_LINES lines of the container. Its image
 * has all that the map says of them, and which of them are left:
 *
 *   header: checksum, epoch, unit │ a place for each line │ a bit for each line: left │ deltas
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

uint64_t log_image_of(const struct txn *t, uint64_t unit, uint64_t epoch, struct log_image *to)
{
    const struct log_engine *k = log_engine_of(t);
    const uint32_t *map = k->map + unit * LOG_UNIT_LINES;
    struct log_unit *u = (struct log_unit *)(to + 1);
    uint64_t deltas = 0, any = 0;
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++) {
        any |= map[i];
        u->places[i] = base_of(k, map[i]);
        if (has_delta(map[i]))
            u->deltas[deltas++] =
                log_unit_delta(i, delta_of(k, map[i])->mask, word_of(delta_of(k, map[i])));
    }
    memcpy(u->left, k->left + unit * LOG_UNIT_LINES / 64, sizeof u->left);
    for (uint64_t i = 0; i < LOG_UNIT_LINES / 64; i++)
        any |= u->left[i];
    if (any == 0)
        return 0;
    *to = (struct log_image){.epoch = epoch,
                             .number = (uint32_t)unit,
                             .words = (uint32_t)(sizeof *u / sizeof(uint64_t) + deltas)};
    for (; deltas % PM_LINE_WORDS != 0; deltas++) /* the last line ends with zeros */
        u->deltas[deltas] = 0;
    return log_image_lines(to);
}

/* ---- from an image --------------------------------------------------------------------------- */

const struct log_image *log_image_at(const struct txn *t, uint32_t place, uint64_t words)
{
    uint32_t chunk = place / chunk_lines(t), at = place % chunk_lines(t);
    if (chunk == 0 || chunk >= t->c->chunks || at == 0)
        return NULL;
    uint64_t word = ((const struct log_chunk *)at_place(t, place_in(t, chunk, 0)))->word;
    const struct log_image *image = (const struct log_image *)at_place(t, place);
    uint64_t lines = log_image_lines(image);
    if (!seal_is_valid(word) || !log_chunk_has_images(word) || lines > LOG_IMAGE_LINES ||
        lines > chunk_lines(t) - at || image->words < words)
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
    if (k->map[line] == 0 || has_delta(k->map[line]))
        return false;
    log_place_delta(log_add_delta(k, line), mask, word);
    return true;
}

static bool places_are_valid(const struct txn *t, const struct log_unit *u, uint64_t first)
{
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++) {
        const uint64_t word = u->places[i] * (uint64_t)PM_LINE_WORDS;
        if (word != 0 && (first + i < LOG_LINE_MIN || !has_piece(t, word, PM_LINE_WORDS)))
            return false;
    }
    return true;
}

const struct log_image *log_image_of_named(const struct txn *t, uint64_t unit)
{
    const struct log_root_unit named = log_engine_of(t)->checkpoint.named.units[unit];
    const struct log_image *image =
        log_image_at(t, named.place, sizeof(struct log_unit) / sizeof(uint64_t));
    bool is_right = image && image->number == unit && (uint32_t)image->checksum == named.sum &&
                    image->epoch <= log_engine_of(t)->checkpoint.named.epoch;
    return is_right ? image : NULL;
}

/* What each chunk has the root says, so nothing is counted here. */
bool log_load_unit(const struct txn *t, uint64_t unit)
{
    struct log_engine *k = log_engine_of(t);
    const uint64_t first = unit * LOG_UNIT_LINES;
    if (!log_unit_is_absent(k, unit))
        return true;
    const struct log_image *image = log_image_of_named(t, unit);
    if (!image)
        return false;
    const struct log_unit *u = (const struct log_unit *)(image + 1);
    if (!places_are_valid(t, u, first))
        return false;
    k->checkpoint.states[unit] &= (uint8_t)~UNIT_ABSENT;
    memcpy(k->map + first, u->places, sizeof u->places);
    memcpy(k->left + first / 64, u->left, sizeof u->left);
    for (uint64_t i = 0; i < image->words - sizeof *u / sizeof(uint64_t); i++)
        if (!load_delta(t, unit, u->deltas[i]))
            return false;
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
    uint32_t *map = k->map + unit * LOG_UNIT_LINES;
    bool is_data = unit * LOG_UNIT_LINES >= log_lines_of_metadata(t);
    if (!k->bounded || !is_data || k->checkpoint.states[unit] != UNIT_SAVED) /* K5 */
        return;
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++)
        if (has_delta(map[i]))
            log_drop_delta(k, map[i]);
    if (map_clear_table(map, LOG_UNIT_LINES * sizeof *map) != 0) /* then the memory stays */
        memset(map, 0, LOG_UNIT_LINES * sizeof *map);
    if (k->checkpoint.named.units[unit].place != 0)
        k->checkpoint.states[unit] |= UNIT_ABSENT;
    log_note_unit(t, unit, false);
}

/* ---- what the map adds up to ----------------------------------------------------------------- */

void log_add_unit(const struct txn *t, uint64_t unit, struct map_total *total)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0, line = unit * LOG_UNIT_LINES; i < LOG_UNIT_LINES; i++, line++) {
        uint32_t entry = k->map[line], base = base_of(k, entry);
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
