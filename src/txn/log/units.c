/*
 * Units of the map, and their images in the file. A unit is LOG_UNIT_LINES lines of the container. Its image
 * has all that the map says of them, and which of them are left:
 *
 *   header: checksum, epoch, unit │ a place for each line │ a bit for each line: left │ deltas
 *
 * K1: an image says what the map said after one commit, the checkpoint's, of all lines of its unit. An image
 * of an older checkpoint will do, if the unit has not changed since.
 */
#include "txn/log/deltas.h"

#include "base/checksum.h"

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
    return log_image_sum(t->c, copy, place) == sum ? copy : NULL;
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

/* So many words of a chunk count from here on. False: it has not as many. */
static bool add_live(const struct txn *t, uint32_t place, uint32_t words)
{
    struct log_engine *k = log_engine_of(t);
    log_add_live(k, place >> k->chunk_shift, words);
    return k->chunks[place >> k->chunk_shift].live <= chunk_lines(t) * PM_LINE_WORDS;
}

static bool count_entry(const struct txn *t, uint32_t entry)
{
    struct log_engine *k = log_engine_of(t);
    k->lines_live++;
    return add_live(t, base_of(k, entry), PM_LINE_WORDS) &&
           (!has_delta(entry) ||
            add_live(t, delta_of(k, entry)->place, log_delta_words(delta_of(k, entry))));
}

static bool load_delta(struct txn *t, uint64_t unit, uint64_t delta)
{
    uint32_t mask = log_delta_mask(delta);
    uint64_t word = log_unit_delta_word(delta), line = log_unit_delta_line(delta);
    if (mask == 0 || line >= LOG_UNIT_LINES || !has_piece(t, word, log_count_words(mask)))
        return false;
    struct moved_line moved = {.line = unit * LOG_UNIT_LINES + line};
    bool is_first = !has_delta(log_engine_of(t)->map[moved.line]);
    (void)log_enter_delta(t, &moved, mask, word);
    return is_first && moved.from != 0;
}

bool log_load_unit(struct txn *t, uint64_t unit, uint32_t place, uint64_t epoch, uint64_t *sum)
{
    struct log_engine *k = log_engine_of(t);
    const uint64_t first = unit * LOG_UNIT_LINES,
                   fixed = sizeof(struct log_unit) / sizeof(uint64_t);
    const struct log_image *image = log_image_at(t, place, fixed);
    if (!image || image->number != unit || image->epoch > epoch)
        return false;
    const struct log_unit *u = (const struct log_unit *)(image + 1);
    for (uint64_t i = 0; i < LOG_UNIT_LINES; i++) {
        const uint64_t word = u->places[i] * (uint64_t)PM_LINE_WORDS;
        if (word != 0 && (first + i < LOG_LINE_MIN || !has_piece(t, word, PM_LINE_WORDS)))
            return false;
    }
    memcpy(k->map + first, u->places, sizeof u->places);
    memcpy(k->left + first / 64, u->left, sizeof u->left);
    for (uint64_t i = 0; i < image->words - fixed; i++)
        if (!load_delta(t, unit, u->deltas[i]))
            return false;
    for (uint64_t line = first; line < first + LOG_UNIT_LINES; line++) {
        if (k->map[line] == 0)
            continue;
        if (!count_entry(t, k->map[line]))
            return false;
        *sum += entry_term(k, log_line_hash(t->c->seed, line), k->map[line]);
    }
    return true;
}
