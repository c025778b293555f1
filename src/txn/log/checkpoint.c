/*
 * Checkpoints: what the map was after a commit, in the file. Recovery then reads the map, and of the log only
 * what is behind that commit. Each checkpoint writes the units of the map that have changed since the last
 * one. For the others the old images will do.
 *
 *            due             all units, root            durable            durable
 *   NONE ──────────► WRITING ───────────────► WRITTEN ───────────► NAMED ──────────► NONE
 *              a share at each commit                  the state page         images that nobody
 *                                                      has its place          needs wait to be void
 *
 * A checkpoint is of the commit before the one at whose beginning it begins. Later commits change the map
 * while its images are written. So before a unit changes that has no image yet, the image is made, in memory
 * (K1). A checkpoint needs no fence of its own, but it may take a chunk, as a commit does.
 *
 *  K2  The state page names a checkpoint when a later fence has made durable its images, its root, and the
 *      commit that it is of. So what recovery goes on from is there.
 *  K4  An image stays until the state page names a newer checkpoint, or none, and that is durable.
 *
 * Nobody needs a checkpoint, for the log has everything. So a checkpoint that cannot be written is abandoned,
 * and the next one is tried later. On a full disk all images are given up before the cleaner works for the
 * room.
 *
 * Images are in chunks of their own. Such a chunk is void when none of its images is needed. To keep single
 * images from holding many chunks, a checkpoint writes the images of sparse chunks again. It also writes
 * images again that keep the file from getting shorter (surplus.c).
 */
#include "txn/log/deltas.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* With options.private_max alone: bytes of log between checkpoints. Images should be no more than a share of
 * what is written. */
#define INTERVAL_DEFAULT (UINT64_C(64) << 20)
#define IMAGES_SHARE     8
/* A checkpoint is spread over this share of the log that is written to the next one. */
#define SPREAD_SHARE 4
/* Sparse chunks are cleared if there are so many more than are needed, and a quarter. */
#define SPARSE_CHUNKS_MIN 2
/* A chunk is sparse if less than this share of it is needed. */
#define SPARSE_SHARE 2

static struct checkpoint *checkpoint_of(const struct txn *t)
{
    return &log_engine_of(t)->checkpoint;
}

int log_checkpoint_open(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    struct tables *tables = &t->c->tables;
    uint64_t units = t->c->max_size / PM_LINE / LOG_UNIT_LINES;
    bool is_wanted = t->c->watcher >= 0 || t->c->checkpoint_bytes != 0,
         is_known = t->c->header.version > FORMAT_LOG_BARE_ROOTS;
    c->states = tables_take(tables, units * sizeof *c->states);
    c->named.units = tables_take(tables, units * sizeof *c->named.units);
    c->next.units = tables_take(tables, units * sizeof *c->next.units);
    if (!is_wanted || !is_known)
        return 0;
    c->is_strict = t->c->checkpoint_bytes != 0;
    c->interval = divide_up(c->is_strict ? t->c->checkpoint_bytes : INTERVAL_DEFAULT, PM_LINE);
    c->image = aligned_alloc(PM_LINE, LOG_IMAGE_LINES * PM_LINE);
    return c->image ? 0 : -ENOMEM;
}

void log_checkpoint_free(struct log_engine *k)
{
    struct checkpoint *c = &k->checkpoint;
    free(c->image);
    vector_free(&c->ahead);
    vector_free(&c->root);
    vector_free(&c->named.root);
    vector_free(&c->next.root);
}

bool log_has_checkpoint(const struct txn *t)
{
    return checkpoint_of(t)->chunks > 0 || checkpoint_of(t)->phase != CHECKPOINT_NONE;
}

static uint64_t units_of(const struct txn *t)
{
    return max_u64(checkpoint_of(t)->units, container_bytes(t->c) / PM_LINE / LOG_UNIT_LINES);
}

/* Units that have changed since the newest checkpoint. */
static uint64_t changed_units(const struct txn *t)
{
    return units_of(t) - min_u64(checkpoint_of(t)->saved, units_of(t));
}

/* ---- images in the file ---------------------------------------------------------------------- */

/* Take a chunk for images. -errno */
static int begin_chunk(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    struct checkpoint *c = &k->checkpoint;
    uint32_t chunk;
    int error = log_take_chunk(t, &chunk);
    if (error != 0)
        return error;
    error = log_store_header(t, chunk, log_chunk_word(k->generation, LOG_END_IMAGES), t->epoch);
    if (error != 0) {
        log_untake_chunk(t, chunk);
        return error;
    }
    k->chunks[chunk].end = LOG_END_IMAGES;
    c->chunk = chunk;
    c->line = 1;
    c->chunks++;
    return 0;
}

/* Where an image of so many lines goes. -errno */
static int find_place(struct txn *t, uint64_t lines, uint32_t *place)
{
    struct checkpoint *c = checkpoint_of(t);
    int error = c->chunk == 0 || lines > chunk_lines(t) - c->line ? begin_chunk(t) : 0;
    *place = place_in(t, c->chunk, c->line);
    return error;
}

/* Write an image there. Its header, whose checksum is still zero, is changed. -errno */
static int write_image(struct txn *t, struct log_image *image, uint32_t place)
{
    uint64_t lines = log_image_lines(image);
    image->checksum = log_image_sum(t->c, image, place);
    int error = log_store(t, place, image, lines * PM_LINE);
    if (error == 0)
        checkpoint_of(t)->line += (uint32_t)lines;
    return error;
}

static int write_unit(struct txn *t, struct log_image *image)
{
    uint32_t place, unit = image->number;
    int error = find_place(t, log_image_lines(image), &place);
    if (error == 0)
        error = write_image(t, image, place);
    if (error == 0)
        checkpoint_of(t)->next.units[unit] =
            (struct image_place){.place = place,
                                 .lines = (uint32_t)log_image_lines(image),
                                 .sum = (uint32_t)image->checksum};
    return error;
}

/* Write a piece of the root, which the piece at `next` follows. -errno */
static int write_piece(struct txn *t, uint32_t number, uint32_t next, struct image_place *piece)
{
    struct checkpoint *c = checkpoint_of(t);
    const uint64_t first = number * LOG_ROOT_WORDS,
                   words = min_u64(c->root.count - first, LOG_ROOT_WORDS);
    *c->image = (struct log_image){.epoch = c->next.epoch,
                                   .number = LOG_ROOT | number,
                                   .words = (uint32_t)words,
                                   .next = next};
    memset(c->image + 1, 0, (log_image_lines(c->image) - 1) * PM_LINE);
    memcpy(c->image + 1, (uint64_t *)c->root.items + first, words * sizeof(uint64_t));
    piece->lines = (uint32_t)log_image_lines(c->image);
    int error = find_place(t, piece->lines, &piece->place);
    return error == 0 ? write_image(t, c->image, piece->place) : error;
}

/* Add to the root what the checkpoint says of units. */
static void finish_root(const struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    struct log_root *root = c->root.items;
    for (uint32_t i = 0; i < root->units; i++) {
        const struct image_place *u = &c->next.units[i];
        log_root_units(root)[i] = (struct log_root_unit){.place = u->place, .sum = u->sum};
        if (log_engine_of(t)->packs_images)
            log_root_lines(root)[i] = (uint8_t)u->lines;
    }
}

/* Write the root, the last piece first: each piece says where the next one is. -errno */
static int write_root(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    uint32_t count = (uint32_t)divide_up(c->root.count, LOG_ROOT_WORDS), next = 0;
    finish_root(t);
    c->next.root.count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!vector_push(&c->next.root, sizeof(struct image_place)))
            return -ENOMEM;
    struct image_place *pieces = c->next.root.items;
    int error = 0;
    for (uint32_t i = count; i-- > 0 && error == 0; next = pieces[i].place)
        error = write_piece(t, i, next, &pieces[i]);
    return error;
}

/* ---- chunks with images ---------------------------------------------------------------------- */

static void count_image(struct log_engine *k, struct image_place image)
{
    if (image.place != 0)
        k->chunks[image.place >> k->chunk_shift].image_lines += image.lines;
}

void log_count_images(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    struct checkpoint *c = &k->checkpoint;
    const struct image_place *pieces = c->named.root.items;
    c->images = c->lines = 0;
    for (uint32_t i = 1; i < t->c->chunks; i++)
        if (log_has_images(k, i))
            k->chunks[i].image_lines = 0;
    for (uint64_t i = 0; i < c->units; i++) {
        c->images += c->named.units[i].place != 0;
        c->lines += c->named.units[i].lines;
        count_image(k, c->named.units[i]);
    }
    for (uint64_t i = 0; i < c->named.root.count; i++)
        count_image(k, pieces[i]);
}

/* Let the chunks wait to be void that have no image which is needed. No checkpoint is being made. The open
 * transaction has nothing to do with that. So they wait for the commit before it, which may be durable. */
static void leave_chunks(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    struct checkpoint *c = &k->checkpoint;
    log_count_images(t);
    for (uint32_t i = 1; i < t->c->chunks; i++) {
        if (!log_has_images(k, i) || k->chunks[i].image_lines > 0 || i == c->chunk)
            continue;
        k->chunks[i].end = 1;
        log_chunk_emptied(t, i, t->epoch - 1);
        c->chunks--;
    }
}

/* Whether a chunk has so few images that they are better written again. */
static bool is_sparse(const struct txn *t, uint32_t chunk)
{
    const struct log_engine *k = log_engine_of(t);
    return chunk != k->checkpoint.chunk &&
           k->chunks[chunk].image_lines < chunk_lines(t) / SPARSE_SHARE;
}

uint64_t log_chunks_of_images(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    uint64_t lines = 0;
    for (uint32_t i = 1; i < t->c->chunks; i++)
        lines += k->chunks[i].image_lines;
    return divide_up(lines, chunk_lines(t));
}

/* Lines that the images of so many units will take: as many as those of the named checkpoint do. While there
 * are none, as many as tables take. */
static uint64_t lines_to_come(const struct txn *t, uint64_t units)
{
    const struct checkpoint *c = checkpoint_of(t);
    return c->images == 0 ? units * LOG_TABLE_LINES : divide_up(units * c->lines, c->images);
}

uint64_t log_images_to_come(const struct txn *t)
{
    const struct checkpoint *c = checkpoint_of(t);
    uint64_t images = 0;
    if (c->chunks > 0 && c->phase == CHECKPOINT_NONE)
        images = changed_units(t);
    else if (c->phase == CHECKPOINT_WRITING)
        images = c->awaited - min_u64(c->awaited, c->written);
    return divide_up(lines_to_come(t, images), chunk_lines(t));
}

static bool has_sparse_chunks(const struct txn *t)
{
    uint64_t needed = log_chunks_of_images(t);
    return checkpoint_of(t)->chunks > SPARSE_CHUNKS_MIN + needed + needed / 4;
}

/* ---- the phases ------------------------------------------------------------------------------ */

static enum unit_state state_of(const struct checkpoint *c, uint64_t unit)
{
    return c->states[unit] & ~UNIT_ABSENT;
}

/* The unit is absent afterwards if it is now. */
static void set_state(struct checkpoint *c, uint64_t unit, enum unit_state state)
{
    c->states[unit] = (uint8_t)((c->states[unit] & UNIT_ABSENT) | state);
}

/* The map cannot give units back that have changed. If there are too many, a checkpoint is due, whatever it
 * costs. But one that cannot be written is not tried at each commit. */
static bool is_due(const struct txn *t)
{
    const struct checkpoint *c = checkpoint_of(t);
    uint64_t changed = changed_units(t);
    bool is_cheap = c->is_strict || c->logged >= lines_to_come(t, changed) * IMAGES_SHARE;
    bool is_needed = changed > log_units_max(t) && c->logged >= changed / PM_LINE_WORDS;
    return c->logged > 0 && ((c->logged >= c->interval && is_cheap) || is_needed);
}

/* Note what the root says that later commits change. -ENOMEM */
static int begin_root(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    struct checkpoint *c = checkpoint_of(t);
    c->next.chunks = log_end_of_use(t); /* S2 in surplus.c */
    uint64_t words = log_words_of_root(t, c->next.chunks, c->units);
    c->root.count = 0;
    while (c->root.count < words) {
        uint64_t *word = vector_push(&c->root, sizeof *word);
        if (!word)
            return -ENOMEM;
        *word = 0;
    }
    struct log_root *root = c->root.items;
    root->map = k->map_sum;
    root->lines = k->lines_live;
    root->base = log_base(t->c->pointers_base);
    root->chunks = c->next.chunks;
    root->units = (uint32_t)c->units;
    root->segments = atomic_load(&t->c->segments);
    for (uint32_t i = 1; i < root->chunks; i++)
        log_root_chunks(root)[i] = (struct log_root_chunk){
            .end = log_has_images(k, i) ? 0 : k->chunks[i].end, .live = k->chunks[i].live};
    return 0;
}

/* If the file's last chunk has images, and could be cut off, they are written again elsewhere. Returns that
 * chunk, or 0. */
static uint32_t leave_last(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    uint32_t last = t->c->chunks - 1;
    if (!log_has_surplus(t) || !log_has_images(log_engine_of(t), last))
        return 0;
    if (c->chunk == last)
        c->chunk = 0;
    return last;
}

/* Begin a checkpoint of the last commit. -ENOMEM */
static int begin(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    c->units = units_of(t);
    int error = begin_root(t);
    if (error != 0)
        return error;
    memcpy(c->next.units, c->named.units, c->units * sizeof *c->next.units);
    bool clears = has_sparse_chunks(t);
    uint32_t last = leave_last(t);
    c->awaited = 0;
    for (uint64_t i = 0; i < c->units; i++) {
        uint32_t place = c->named.units[i].place, chunk = place >> log_engine_of(t)->chunk_shift;
        bool is_moved = place != 0 && (chunk == last || (clears && is_sparse(t, chunk)));
        if (state_of(c, i) != UNIT_CHANGED && !is_moved)
            continue;
        set_state(c, i, UNIT_AWAITED);
        c->awaited++;
    }
    c->next.epoch = t->epoch - 1;
    c->logged = c->at = c->written = c->changed = 0;
    c->phase = CHECKPOINT_WRITING;
    return 0;
}

/* K1: the image of a unit is made before the unit changes. False: there is no memory. */
static bool image_ahead(struct txn *t, uint64_t unit)
{
    struct checkpoint *c = checkpoint_of(t);
    uint64_t lines = log_image_of(t, unit, c->next.epoch, c->image);
    c->next.units[unit] = (struct image_place){.place = 0};
    c->image->checksum = 0;
    for (uint64_t i = 0; i < lines; i++) {
        void *line = vector_push(&c->ahead, PM_LINE);
        if (!line)
            return false;
        memcpy(line, c->image + i, PM_LINE);
    }
    return true;
}

void log_change_unit(struct txn *t, uint64_t line)
{
    struct checkpoint *c = checkpoint_of(t);
    uint8_t *state = &c->states[line / LOG_UNIT_LINES];
    log_need_unit(t, line);
    if (*state == UNIT_AWAITED && !image_ahead(t, line / LOG_UNIT_LINES))
        c->failed = true;
    c->saved -= *state == UNIT_SAVED && c->saved > 0;
    c->changed++;
    *state = UNIT_CHANGED;
}

static int write_ahead(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    int error = 0;
    for (uint64_t i = 0; i < c->ahead.count && error == 0;) {
        struct log_image *image = c->image;
        memcpy(image, (char *)c->ahead.items + i * PM_LINE, PM_LINE);
        uint64_t lines = log_image_lines(image);
        memcpy(image, (char *)c->ahead.items + i * PM_LINE, lines * PM_LINE);
        error = write_unit(t, image);
        i += lines;
        c->written++;
    }
    c->ahead.count = 0;
    return error;
}

/* Write the image of an absent unit again: its chunk is sparse. -errno */
static int write_again(struct txn *t, uint64_t unit)
{
    struct checkpoint *c = checkpoint_of(t);
    if (!log_image_of_named(t, unit))
        return -EBADMSG;
    c->image->checksum = 0;
    return write_unit(t, c->image);
}

/* Write the image of the next unit that awaits one. -errno */
static int write_next(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    while (c->at < c->units && state_of(c, c->at) != UNIT_AWAITED)
        c->at++;
    if (c->at == c->units)
        return 0;
    int error = 0;
    c->next.units[c->at] = (struct image_place){.place = 0};
    if (log_unit_is_absent(log_engine_of(t), c->at))
        error = write_again(t, c->at);
    else if (log_image_of(t, c->at, c->next.epoch, c->image) > 0)
        error = write_unit(t, c->image);
    if (error != 0)
        return error;
    set_state(c, c->at++, UNIT_WRITTEN);
    c->written++;
    return 0;
}

/* Write images until so many units have theirs, and when all have them, the root. -errno */
static int write_until(struct txn *t, uint64_t wanted)
{
    struct checkpoint *c = checkpoint_of(t);
    int error = c->failed ? -ENOMEM : write_ahead(t);
    while (error == 0 && c->written < wanted && c->at < c->units)
        error = write_next(t);
    while (error == 0 && c->at < c->units && state_of(c, c->at) != UNIT_AWAITED)
        c->at++;
    if (error != 0 || c->at < c->units)
        return error;
    error = write_root(t);
    if (error != 0)
        return error;
    c->phase = CHECKPOINT_WRITTEN;
    c->due = t->epoch;
    return 0;
}

/* Absent units are as the images say that the state page names. */
static void abandon(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    for (uint64_t i = 0; i < c->units; i++)
        if (state_of(c, i) == UNIT_AWAITED || state_of(c, i) == UNIT_WRITTEN)
            set_state(c, i, log_unit_is_absent(log_engine_of(t), i) ? UNIT_SAVED : UNIT_CHANGED);
    c->ahead.count = 0;
    c->failed = false;
    c->phase = CHECKPOINT_NONE;
    leave_chunks(t);
}

/* K2. -errno: the state page may have it, or not */
static int name(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    const struct image_place *root = c->next.root.items; /* its first piece */
    int error =
        medium_publish_word(&t->c->medium, &file_state(t->c)->checkpoint, seal(root->place));
    if (error != 0)
        return error;
    c->phase = CHECKPOINT_NAMED;
    c->due = t->epoch;
    return 0;
}

/* K4: the checkpoint is named, durably. */
static void retire(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    struct image_places old = c->named;
    c->named = c->next;
    c->next = old;
    c->saved = 0;
    for (uint64_t i = 0; i < c->units; i++) {
        if (state_of(c, i) == UNIT_WRITTEN)
            set_state(c, i, UNIT_SAVED);
        c->saved += state_of(c, i) == UNIT_SAVED;
        if (c->states[i] == UNIT_SAVED && c->named.units[i].place != 0)
            log_note_unit(t, i, true); /* it may be absent from now on */
    }
    c->phase = CHECKPOINT_NONE;
    leave_chunks(t);
}

/* Units that should have their images by now: in step with the log. But all should have them before half as
 * many units have changed again as memory has room for. */
static uint64_t share(const struct txn *t)
{
    const struct checkpoint *c = checkpoint_of(t);
    uint64_t lines = max_u64(1, c->interval / SPREAD_SHARE), units = log_units_max(t) / 2;
    if (c->logged >= lines || c->changed >= units)
        return UINT64_MAX;
    uint64_t in_step = max_u64(c->awaited * c->logged / lines, c->awaited * c->changed / units);
    return max_u64(c->written + 1, in_step);
}

void log_checkpoint_go_on(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    uint64_t durable = atomic_load(&t->rounds.durable);
    /* What is reserved is for the program. And what a failed record has left may be in a free chunk. */
    if (log_engine_of(t)->reserved == t->epoch || log_engine_of(t)->stale.count > 0)
        return;
    if (c->phase == CHECKPOINT_NONE && is_due(t))
        (void)begin(t);
    if (c->phase == CHECKPOINT_WRITING && write_until(t, share(t)) != 0)
        abandon(t);
    else if (c->phase == CHECKPOINT_WRITTEN && durable >= c->due)
        (void)name(t); /* if not, the next commit tries again */
    else if (c->phase == CHECKPOINT_NAMED && durable >= c->due)
        retire(t);
}

/* The checkpoint that is on its way is named, or abandoned. -errno */
static int settle(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    int error = 0;
    if (c->phase == CHECKPOINT_WRITING)
        abandon(t);
    if (c->phase == CHECKPOINT_WRITTEN && (error = medium_fence(&t->c->medium)) == 0)
        error = name(t);
    if (c->phase == CHECKPOINT_NAMED && error == 0 && (error = medium_fence(&t->c->medium)) == 0)
        retire(t);
    return error;
}

/* Write a checkpoint at once, and name it. -errno */
static int write_whole(struct txn *t)
{
    int error = begin(t);
    if (error == 0)
        error = write_until(t, UINT64_MAX);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    return error == 0 ? name(t) : error;
}

int log_checkpoint_close(struct txn *t)
{
    const struct checkpoint *c = checkpoint_of(t);
    if (log_engine_of(t)->stale.count > 0)
        return 0;
    int error = settle(t);
    if (error == 0 && c->named.epoch != t->epoch - 1)
        (void)write_whole(t); /* durable with the fences of the close */
    return medium_failed(&t->c->medium);
}

int log_give_up_checkpoint(struct txn *t)
{
    struct checkpoint *c = checkpoint_of(t);
    for (uint64_t i = 0; i < c->units; i++)
        if (!log_load_unit(t, i))
            return -EBADMSG;
    int error = medium_publish_word(&t->c->medium, &file_state(t->c)->checkpoint, 0);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error != 0)
        return error;
    memset(c->named.units, 0, c->units * sizeof *c->named.units);
    memset(c->states, UNIT_CHANGED, c->units);
    c->named.root.count = c->ahead.count = 0;
    c->named.epoch = c->named.chunks = 0;
    c->saved = c->logged = 0;
    c->chunk = 0;
    c->failed = false;
    c->phase = CHECKPOINT_NONE;
    leave_chunks(t);
    return 0;
}

/* ---- check ----------------------------------------------------------------------------------- */

/* Whether the image of a unit that the map has says what the map says. */
static bool image_is_right(const struct txn *t, uint64_t unit, struct log_image *now)
{
    const struct checkpoint *c = checkpoint_of(t);
    if (c->states[unit] != UNIT_SAVED)
        return true;
    uint64_t lines = log_image_of(t, unit, 0, now);
    if (lines == 0 || c->named.units[unit].place == 0)
        return lines == 0 && c->named.units[unit].place == 0;
    const struct log_image *then = log_image_of_named(t, unit);
    return then && then->words == now->words && then->packed == now->packed &&
           then->runs == now->runs && memcmp(then + 1, now + 1, (lines - 1) * PM_LINE) == 0;
}

/* Goes over the map, unit by unit. Returns the place of an image that is damaged, 1 if something else is, or
 * 0. */
static uint64_t find_damage(struct txn *t, struct map_total *total, struct log_image *room)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < units_of(t); i++) {
        if (!log_load_unit(t, i) || !image_is_right(t, i, room))
            return max_u64(k->checkpoint.named.units[i].place, 1);
        log_add_unit(t, i, total);
        log_keep_bound(t);
    }
    return k->drops && !log_adds_up(t, total); /* if not, lines behind the end may have pieces */
}

int log_check_map(struct txn *t)
{
    struct map_total total = {.live = calloc(t->c->chunks, sizeof *total.live)};
    struct log_image *room = aligned_alloc(PM_LINE, LOG_IMAGE_LINES * PM_LINE);
    bool is_there = total.live && room;
    uint64_t damaged = is_there ? find_damage(t, &total, room) : 0;
    free(room);
    free(total.live);
    if (!is_there)
        return pm__fail_system(ENOMEM, "%s: no memory to check the log's map", t->c->path);
    if (damaged == 0)
        return 0;
    return pm__fail_at(t->c->path, damaged * PM_LINE, EBADMSG,
                       "a checkpoint of the log's map is damaged, and nothing else is; open the container "
                       "once without checkpoint_bytes and private_max");
}
