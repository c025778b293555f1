/*
 * Reading a checkpoint, before recovery reads the records behind it. The state page has the place of its
 * root; the root has those of the images, and half of their checksums. If memory is bounded, an image is read
 * when somebody needs it. The log has everything by itself. So a damaged checkpoint loses nothing: the
 * opening warns the program, and reads all of the log.
 */
#include "txn/log/log.h"

#include "base/error.h"
#include "txn/recovery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct root_reader {
    struct vector words; /* of the root */
    struct vector *pieces;
    uint64_t epoch;
};

/* Read all pieces of a root. -EBADMSG: one is damaged; -ENOMEM */
static int read_pieces(const struct txn *t, struct root_reader *r, uint32_t place)
{
    for (uint32_t number = 0; place != 0; number++) {
        const struct log_image *piece = log_image_at(t, place);
        if (!piece || piece->number != (LOG_ROOT | number) ||
            (number > 0 && piece->epoch != r->epoch))
            return -EBADMSG;
        struct image_place *noted = vector_push(r->pieces, sizeof *noted);
        if (!noted)
            return -ENOMEM;
        *noted = (struct image_place){.place = place, .lines = (uint32_t)log_image_lines(piece)};
        r->epoch = piece->epoch;
        for (uint32_t i = 0; i < piece->words; i++) {
            uint64_t *word = vector_push(&r->words, sizeof *word);
            if (!word)
                return -ENOMEM;
            *word = ((const uint64_t *)(piece + 1))[i];
        }
        place = piece->next;
    }
    return 0;
}

/* Whether an image of each unit can be as long as a root says. */
static bool lines_are_valid(struct log_root *root)
{
    const struct log_root_unit *units = log_root_units(root);
    const uint8_t *lines = log_root_lines(root);
    for (uint32_t i = 0; i < root->units; i++)
        if ((units[i].place == 0) != (lines[i] == 0) || lines[i] > LOG_IMAGE_LINES)
            return false;
    return true;
}

/* Whether a root has as many words as it says, and its chunks and units can be there. */
static bool root_is_valid(const struct txn *t, const struct root_reader *r)
{
    struct log_root *root = r->words.items;
    if (r->words.count < log_root_words(0, 0) || r->epoch == 0 || r->epoch > EPOCH_MAX ||
        root->chunks == 0 || root->chunks > t->c->chunks || root->segments > t->c->segments_max ||
        root->units > t->c->max_size / PM_LINE / LOG_UNIT_LINES ||
        r->words.count != log_words_of_root(t, root->chunks, root->units))
        return false;
    for (uint32_t i = 0; i < root->chunks; i++)
        if (log_root_chunks(root)[i].end > chunk_lines(t) ||
            log_root_chunks(root)[i].live > chunk_lines(t) * PM_LINE_WORDS)
            return false;
    return !log_engine_of(t)->packs_images || lines_are_valid(root);
}

/* A chunk has images that are needed. False: there is no such chunk. */
static bool take_image(struct txn *t, uint32_t place)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t chunk = place / chunk_lines(t);
    if (chunk == 0 || chunk >= t->c->chunks)
        return false;
    k->checkpoint.chunks += !log_has_images(k, chunk);
    k->chunks[chunk].end = LOG_END_IMAGES;
    return true;
}

/* Where a root says that a unit's image is. If the root does not say how long the image is, the image has a
 * table. It may have deltas, too, but few as a rule. */
static struct image_place place_of_unit(const struct txn *t, struct log_root *root, uint64_t unit)
{
    const struct log_root_unit u = log_root_units(root)[unit];
    uint32_t lines = u.place == 0 ? 0 : LOG_TABLE_LINES;
    if (log_engine_of(t)->packs_images)
        lines = log_root_lines(root)[unit];
    return (struct image_place){.place = u.place, .lines = lines, .sum = u.sum};
}

/* What the root says of chunks, and of units, which are all absent. */
static bool take_root(struct txn *t, const struct root_reader *r)
{
    struct log_engine *k = log_engine_of(t);
    struct checkpoint *c = &k->checkpoint;
    struct log_root *root = r->words.items;
    const struct image_place *pieces = r->pieces->items;
    bool valid = true;
    c->named.epoch = r->epoch;
    c->named.chunks = root->chunks;
    c->units = c->saved = root->units;
    for (uint64_t i = 0; i < r->pieces->count && valid; i++)
        valid = take_image(t, pieces[i].place);
    for (uint64_t i = 0; i < c->units && valid; i++) {
        c->named.units[i] = place_of_unit(t, root, i);
        bool has_image = c->named.units[i].place != 0;
        valid = !has_image || take_image(t, c->named.units[i].place);
        c->states[i] = has_image ? UNIT_SAVED | UNIT_ABSENT : UNIT_SAVED;
    }
    if (valid)
        log_count_images(t);
    for (uint32_t i = 1; i < root->chunks; i++)
        log_add_live(k, i, log_root_chunks(root)[i].live);
    k->lines_live = root->lines;
    k->map_sum = root->map;
    return valid;
}

/* Memory is not bounded: home needs the whole map at once.
 * -EBADMSG: an image is damaged, or the sum is not the root's; -ENOMEM */
static int load_units(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    struct map_total total = {.live = calloc(t->c->chunks, sizeof *total.live)};
    if (!total.live)
        return -ENOMEM;
    bool valid = true;
    for (uint64_t i = 0; i < k->checkpoint.units && valid; i++) {
        valid = log_load_unit(t, i);
        if (valid)
            log_add_unit(t, i, &total);
    }
    valid = valid && log_adds_up(t, &total);
    free(total.live);
    return valid ? 0 : -EBADMSG;
}

/* -ENOMEM */
static int note_root(const struct root_reader *r, struct found_checkpoint *found)
{
    struct log_root *root = r->words.items;
    found->ends = malloc(root->chunks * sizeof *found->ends);
    if (root->chunks > 0 && !found->ends)
        return -ENOMEM;
    for (uint32_t i = 0; i < root->chunks; i++)
        found->ends[i] = log_root_chunks(root)[i].end;
    found->chunks = root->chunks;
    found->segments = root->segments;
    found->base = root->base;
    found->epoch = r->epoch;
    return 0;
}

/* The map is empty again. */
static void forget(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    struct checkpoint *c = &k->checkpoint;
    for (uint64_t i = 0; i < c->units; i++)
        if (c->named.units[i].place != 0) { /* others have been empty */
            line_map_clear(&k->map, i * LOG_UNIT_LINES, LOG_UNIT_LINES);
            memset(k->left + i * LOG_UNIT_LINES / 64, 0, LOG_UNIT_LINES / 8);
            log_note_unit(t, i, false);
        }
    memset(k->chunks, 0, t->c->chunks * sizeof *k->chunks);
    memset(k->deltas, 0, k->deltas_known * sizeof *k->deltas);
    memset(c->states, UNIT_CHANGED, c->units);
    memset(c->named.units, 0, c->units * sizeof *c->named.units);
    c->named.epoch = c->named.chunks = c->named.root.count = 0;
    c->units = c->saved = c->images = c->lines = 0;
    c->chunks = k->deltas_known = k->unused_delta = 0;
    k->lines_live = k->words_live = k->map_sum = 0;
}

static void warn(const struct txn *t)
{
    (void)pm__fail_at(t->c->path, FORMAT_STATE + offsetof(struct format_state, checkpoint), EBADMSG,
                      "the checkpoint of the log's map that is named here is damaged, so all of the log is "
                      "read; nothing is lost");
    pm__warn();
}

void log_forget_checkpoint(struct txn *t, struct found_checkpoint *found)
{
    forget(t);
    free(found->ends);
    *found = (struct found_checkpoint){.epoch = 0};
    warn(t);
}

int log_load_checkpoint(struct txn *t, struct found_checkpoint *found)
{
    struct root_reader r = {.pieces = &log_engine_of(t)->checkpoint.named.root};
    uint64_t word = file_state(t->c)->checkpoint;
    int error = -EBADMSG;
    *found = (struct found_checkpoint){.epoch = 0};
    if (word == 0)
        return 0;
    if (seal_is_valid(word) && seal_payload(word) <= UINT32_MAX)
        error = read_pieces(t, &r, (uint32_t)seal_payload(word));
    if (error == 0 && !(root_is_valid(t, &r) && take_root(t, &r)))
        error = -EBADMSG;
    if (error == 0 && !log_engine_of(t)->bounded)
        error = load_units(t);
    if (error == 0)
        error = note_root(&r, found);
    vector_free(&r.words);
    if (error == -EBADMSG) {
        log_forget_checkpoint(t, found);
        return 0;
    }
    return error;
}
