/*
 * Reading a checkpoint, before recovery reads the records behind it. The state page has the place of its
 * root; the root has those of the images. All images are read, and the sum over the map is compared with the
 * root's. So a checkpoint counts as a whole, or not at all. The log has everything by itself. So if anything
 * is wrong with a checkpoint, all of the log is read, and the program is warned.
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

/* Read all pieces of a root. False: one is damaged, or there is no memory. */
static bool read_pieces(const struct txn *t, struct root_reader *r, uint32_t place)
{
    for (uint32_t number = 0; place != 0; number++) {
        const struct log_image *piece = log_image_at(t, place, 1);
        uint32_t *noted = vector_push(r->pieces, sizeof *noted);
        if (!piece || !noted || piece->number != (LOG_ROOT | number) ||
            (number > 0 && piece->epoch != r->epoch))
            return false;
        *noted = place;
        r->epoch = piece->epoch;
        for (uint32_t i = 0; i < piece->words; i++) {
            uint64_t *word = vector_push(&r->words, sizeof *word);
            if (!word)
                return false;
            *word = ((const uint64_t *)(piece + 1))[i];
        }
        place = piece->next;
    }
    return true;
}

/* Whether a root has as many numbers as it says, and its chunks and units can be there. */
static bool root_is_valid(const struct txn *t, const struct root_reader *r)
{
    const struct log_root *root = r->words.items;
    const uint64_t head = sizeof *root / sizeof(uint64_t);
    if (r->words.count < head || r->epoch == 0 || r->epoch > EPOCH_MAX || root->chunks == 0 ||
        root->chunks > t->c->chunks ||
        root->units > t->c->max_size / PM_LINE / LOG_UNIT_LINES ||
        r->words.count != head + divide_up((uint64_t)root->chunks + root->units, 2))
        return false;
    for (uint32_t i = 0; i < root->chunks; i++)
        if (root->numbers[i] > chunk_lines(t))
            return false;
    return true;
}

/* A chunk has images that are needed. False: there is no such chunk. */
static bool count_image(struct txn *t, uint32_t place)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t chunk = place / chunk_lines(t);
    if (chunk == 0 || chunk >= t->c->chunks)
        return false;
    k->checkpoint.chunks += !log_has_images(k, chunk);
    k->chunks[chunk].end = LOG_END_IMAGES;
    k->chunks[chunk].images++;
    return true;
}

static bool count_images(struct txn *t, const struct root_reader *r, const uint32_t *places)
{
    const struct log_root *root = r->words.items;
    const uint32_t *pieces = r->pieces->items;
    bool valid = true;
    for (uint64_t i = 0; i < r->pieces->count && valid; i++)
        valid = count_image(t, pieces[i]);
    for (uint32_t i = 0; i < root->units && valid; i++)
        valid = places[i] == 0 || count_image(t, places[i]);
    return valid;
}

/* Fill the map from a root that is valid. */
static bool load_units(struct txn *t, const struct root_reader *r, struct found_checkpoint *found)
{
    const struct log_engine *k = log_engine_of(t);
    struct checkpoint *c = &log_engine_of(t)->checkpoint;
    const struct log_root *root = r->words.items;
    const uint32_t *places = root->numbers + root->chunks;
    uint64_t sum = 0;
    if (!count_images(t, r, places))
        return false;
    c->units = root->units;
    for (uint32_t i = 0; i < root->units; i++) {
        const uint64_t lines = k->lines_live;
        c->named.units[i] = places[i];
        if (places[i] != 0 && !log_load_unit(t, i, places[i], r->epoch, &sum))
            return false;
        if (k->lines_live > lines)
            found->end = (i + 1) * LOG_UNIT_LINES;
    }
    memset(c->states, UNIT_SAVED, c->units);
    c->saved = c->units;
    return sum == root->map;
}

/* -ENOMEM */
static int note_root(const struct root_reader *r, struct found_checkpoint *found)
{
    const struct log_root *root = r->words.items;
    found->ends = malloc(root->chunks * sizeof *found->ends);
    if (root->chunks > 0 && !found->ends)
        return -ENOMEM;
    memcpy(found->ends, root->numbers, root->chunks * sizeof *found->ends);
    found->chunks = root->chunks;
    found->map = root->map;
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
        if (c->named.units[i] != 0) { /* others have been empty */
            memset(k->map + i * LOG_UNIT_LINES, 0, LOG_UNIT_LINES * sizeof *k->map);
            memset(k->left + i * LOG_UNIT_LINES / 64, 0, LOG_UNIT_LINES / 8);
        }
    memset(k->chunks, 0, t->c->chunks * sizeof *k->chunks);
    memset(k->deltas, 0, k->deltas_known * sizeof *k->deltas);
    memset(c->states, UNIT_CHANGED, c->units);
    memset(c->named.units, 0, c->units * sizeof *c->named.units);
    c->named.root.count = 0;
    c->units = c->saved = 0;
    c->chunks = k->deltas_known = k->unused_delta = 0;
    k->lines_live = k->words_live = 0;
}

static void warn(const struct txn *t)
{
    (void)pm__fail_at(t->c->path, FORMAT_STATE + offsetof(struct format_state, checkpoint), EBADMSG,
                      "the checkpoint of the log's map that is named here is damaged, so all of the log is "
                      "read; nothing is lost");
    pm__warn();
}

int log_load_checkpoint(struct txn *t, struct found_checkpoint *found)
{
    struct root_reader r = {.pieces = &log_engine_of(t)->checkpoint.named.root};
    uint64_t word = file_state(t->c)->checkpoint;
    int error = 0;
    *found = (struct found_checkpoint){.epoch = 0};
    if (word == 0)
        return 0;
    bool valid = seal_is_valid(word) && seal_payload(word) <= UINT32_MAX &&
                 read_pieces(t, &r, (uint32_t)seal_payload(word)) && root_is_valid(t, &r) &&
                 load_units(t, &r, found);
    if (valid)
        error = note_root(&r, found);
    vector_free(&r.words);
    if (!valid || error != 0) {
        forget(t);
        *found = (struct found_checkpoint){.epoch = 0};
    }
    if (!valid)
        warn(t);
    return error;
}
