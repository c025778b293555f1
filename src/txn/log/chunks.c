/*
 * Which chunk is filled, and which is free again.
 *
 *          taken                 its last live piece            void, and fenced
 *   FREE ----------> open, full -------------------> emptied ------------------> voided ---> FREE
 *                                   has a newer one              L8, L9               L10
 *
 * A chunk is voided when `reusable` has passed both its newest epoch and the epoch that emptied it. Then a
 * later fence has passed (L8), and a record that is durable calls these epochs durable. This record is
 * newer than all in the chunk, so it is in another one (L9). If there is no room for a further record, the
 * base says so instead.
 */
#include "txn/log/log.h"

#include "base/error.h"
#include "txn/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The file grows by an eighth at once, but at most by this many bytes. */
#define GROWTH_BYTES_MAX (UINT64_C(2) << 20)

/* A dead chunk waits for three commits, if each is fenced, and meanwhile the file may grow. If nobody calls
 * pm_wait(), it waits for ever. So a commit that needs a chunk may make all dead ones free at once, in three
 * rounds. It does so if more wait than WAITING_MIN and an eighth of all chunks. And the first one must have
 * waited for more than WAITING_COMMITS. */
#define WAITING_MIN     2
#define WAITING_COMMITS 4

/* The disk counts as full when it has room for fewer chunks. */
#define LOOK_AHEAD 3

/* When the file could not grow, try again after so many chunks: there may be room by now. */
#define FULL_CHUNKS 64

int log_tables_open(struct txn *t)
{
    struct log_engine *k = calloc(1, sizeof *k);
    if (!k)
        return -ENOMEM;
    t->own = k;
    k->chunk_shift = (uint32_t)__builtin_ctz(chunk_lines(t));
    struct tables *tables = &t->c->tables;
    uint64_t chunks = container_file_max(t->c) / t->c->chunk_size;
    k->map.count = t->c->max_size / PM_LINE / LINE_MAP_GROUP;
    k->map.groups = tables_take(tables, k->map.count * sizeof *k->map.groups);
    k->map.blocks = tables_take(tables, k->map.count * sizeof *k->map.blocks);
    k->map.owners = tables_take(tables, k->map.count * sizeof *k->map.owners);
    k->deltas = tables_take(tables, t->c->max_size / PM_LINE * sizeof *k->deltas);
    k->left = tables_take(tables, t->c->max_size / PM_LINE / 8);
    k->writes_deltas = t->c->header.version > FORMAT_LOG_OLDEST;
    k->drops = t->c->header.version > FORMAT_LOG_KEEPING;
    k->is_checkpointed = t->c->header.version > FORMAT_LOG_UNCHECKED;
    k->packs_images = t->c->header.version > FORMAT_LOG_UNPACKED;
    k->reserve = LOG_RESERVE;
    k->chunks = tables_take(tables, chunks * sizeof *k->chunks);
    k->mapped = tables_take(tables, t->c->max_size >> PM_PAGE_SHIFT);
    k->handed = tables_take(tables, t->c->max_size >> PM_PAGE_SHIFT);
    struct chunk_list *const lists[] = {&k->free, &k->emptied, &k->voided};
    for (int i = 0; i < 3; i++)
        lists[i]->items = tables_take(tables, chunks * sizeof *lists[i]->items);
    k->stage = aligned_alloc(PM_LINE, LOG_PART_LINES * PM_LINE);
    int error = k->stage ? log_checkpoint_open(t) : -ENOMEM;
    return error == 0 ? log_bound(t) : error;
}

void log_tables_close(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    if (!k)
        return;
    log_unbound(t);
    log_forget_mapped(t);
    free(k->stage);
    vector_free(&k->plan);
    vector_free(&k->pieces);
    vector_free(&k->dropped);
    vector_free(&k->given);
    vector_free(&k->cleaned);
    vector_free(&k->cleaned_lines);
    vector_free(&k->cleaned_deltas.entries);
    vector_free(&k->split_runs);
    vector_free(&k->split_deltas.entries);
    free(k->moved);
    vector_free(&k->filled);
    vector_free(&k->early);
    vector_free(&k->stale);
    log_checkpoint_free(k);
    free(k);
    t->own = NULL;
}

static void push(struct chunk_list *list, uint32_t chunk)
{
    list->items[list->count++] = chunk;
}

/* The lowest is last, and is taken first. So the chunks at the file's end become free (surplus.c). */
static void add_free(struct log_engine *k, uint32_t chunk)
{
    uint32_t i = k->free.count++;
    for (; i > 0 && k->free.items[i - 1] < chunk; i--)
        k->free.items[i] = k->free.items[i - 1];
    k->free.items[i] = chunk;
}

void log_chunks_found(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    k->emptied.count = 0; /* recovery has dropped lines */
    for (uint32_t i = t->c->chunks; i-- > 1;)
        if (k->chunks[i].end == 0)
            add_free(k, i);
        else if (k->chunks[i].live == 0 && !log_is_open(k, i) && !log_has_images(k, i))
            push(&k->emptied, i);
    k->known = t->c->chunks;
}

void log_chunk_emptied(struct txn *t, uint32_t chunk, uint64_t epoch)
{
    struct log_engine *k = log_engine_of(t);
    k->chunks[chunk].emptied = epoch;
    if (!log_is_open(k, chunk))
        push(&k->emptied, chunk);
    if (chunk == k->victim) /* it will be filled anew */
        k->victim = 0;
}

void log_leave_chunk(struct txn *t, enum log_stream stream, uint32_t next)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t before = k->open[stream];
    k->open[stream] = next;
    if (before != 0 && !log_is_open(k, before) && k->chunks[before].live == 0)
        push(&k->emptied, before);
}

int log_store(struct txn *t, uint64_t place, const void *from, uint64_t bytes)
{
    if (t->copy)
        copy_note(t, place * PM_LINE, bytes);
    return medium_copy(&t->c->medium, at_place(t, place), from, bytes);
}

int log_store_header(struct txn *t, uint32_t chunk, uint64_t word, uint64_t begun)
{
    struct log_chunk header = {.word = word,
                               .begun = log_engine_of(t)->is_checkpointed ? begun : 0};
    return log_store(t, place_in(t, chunk, 0), &header, sizeof header);
}

/* A fence has passed since these became void. */
static void free_voided(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t durable = atomic_load(&t->rounds.durable);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->voided.count; i++) {
        uint32_t chunk = k->voided.items[i];
        if (k->chunks[chunk].emptied <= durable)
            add_free(k, chunk);
        else
            k->voided.items[kept++] = chunk;
    }
    k->voided.count = kept;
}

int log_void_chunks(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t reusable = atomic_load(&t->rounds.reusable);
    uint32_t kept = 0;
    int error = 0;
    free_voided(t);
    log_cut_surplus(t);
    for (uint32_t i = 0; i < k->emptied.count; i++) {
        uint32_t chunk = k->emptied.items[i];
        struct chunk *h = &k->chunks[chunk];
        bool due = error == 0 && max_u64(h->newest, h->emptied) <= reusable;
        if (due)
            error = log_store_header(t, chunk, 0, 0);
        if (due && error == 0) {
            *h = (struct chunk){.emptied = t->epoch};
            push(&k->voided, chunk);
        } else {
            k->emptied.items[kept++] = chunk;
        }
    }
    k->emptied.count = kept;
    return error;
}

/* The base says that all epochs up to `last` are durable. */
static int void_all(struct txn *t, uint64_t last)
{
    struct log_engine *k = log_engine_of(t);
    atomic_store(&t->rounds.reusable, last);
    int error = log_void_chunks(t);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    for (; error == 0 && k->voided.count > 0; k->voided.count--)
        add_free(k, k->voided.items[k->voided.count - 1]);
    return error;
}

int log_void_found(struct txn *t)
{
    return log_engine_of(t)->emptied.count > 0 ? void_all(t, t->epoch - 1) : 0;
}

int log_reclaim(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t last = t->epoch - 1;
    if (k->emptied.count + k->voided.count == 0)
        return -ENOSPC;
    int error = rounds_sync(t, last);
    if (error == 0)
        error = log_publish_state(t, last, t->c->mark_open);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    return error == 0 ? void_all(t, last) : error;
}

void log_leave_values(struct txn *t)
{
    if (log_engine_of(t)->early.count == 0) /* E1 */
        log_leave_chunk(t, LOG_VALUES, 0);
}

bool log_gains_room(struct txn *t, int error)
{
    if (!log_lacks_room(error))
        return false;
    log_leave_values(t);
    return log_reclaim(t) == 0 || (log_has_checkpoint(t) && log_give_up_checkpoint(t) == 0) ||
           log_clean_chunk(t) == 0;
}

static void note_full(struct log_engine *k, bool is_full)
{
    k->is_full = is_full;
    k->full_at = k->taken;
}

/* Add `count` chunks to the file, or more at once because more will be needed. */
static int grow(struct txn *t, uint64_t count)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t step = min_u64(t->c->chunks / 8, GROWTH_BYTES_MAX / t->c->chunk_size);
    int grown = container_grow_chunks(t->c, (uint32_t)count, (uint32_t)max_u64(step, count));
    note_full(k, log_lacks_room(grown));
    if (grown < 0)
        return grown;
    if (k->bounded)
        map_read_singly(at_place(t, place_in(t, k->known, 0)),
                        (t->c->chunks - k->known) * t->c->chunk_size);
    for (uint32_t i = t->c->chunks; i-- > k->known;)
        add_free(k, i);
    k->known = t->c->chunks;
    return 0;
}

/* Let the file grow until so many chunks are free. */
static int have_free(struct txn *t, uint64_t count)
{
    uint64_t free = log_engine_of(t)->free.count;
    return free < count ? grow(t, count - free) : 0;
}

/* A run of one line may take a line of the table of runs for itself, where a part begins. The record may
 * leave two chunks partly filled: one of LOG_VALUES, and one of LOG_PROGRAM. */
int log_make_room(struct txn *t, uint64_t lines)
{
    uint64_t in_chunk = chunk_lines(t) - 1 - 2 * divide_up(chunk_lines(t), LOG_PART_LINES);
    if (log_makes_pages(t)) /* lines in front of pages, and at the chunk's end */
        in_chunk -= chunk_lines(t) / LOG_PAGES_MIN * PM_PAGE_LINES + LOG_PAGES_ROOM;
    uint64_t chunks = 1 + divide_up(lines, in_chunk - divide_up(in_chunk, PM_LINE_WORDS));
    struct log_engine *k = log_engine_of(t);
    chunks += LOG_RESERVE;
    if (chunks > container_file_max(t->c) / t->c->chunk_size)
        return -EFBIG;
    while (chunks > k->free.count && (log_reclaim(t) == 0 || log_clean_for_reserve(t) == 0))
        ;
    int error = have_free(t, chunks);
    while (log_gains_room(t, error))
        error = have_free(t, chunks);
    if (error != 0)
        return error;
    k->reserved = t->epoch;
    log_note_needed(k, chunks);
    return 0;
}

static bool chunks_wait(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return k->emptied.count > WAITING_MIN + t->c->chunks / 8 &&
           k->chunks[k->emptied.items[0]].emptied + WAITING_COMMITS < t->epoch;
}

/* The next chunk will be one that the file has not got yet. If there is no room for it and a few more, learn
 * that now. Then commits clean in steps from here on, and none needs to clean a whole chunk. But a dead chunk
 * is as good as a new one. */
static void look_ahead(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    if (!k->is_full && k->emptied.count + k->voided.count == 0 &&
        !container_has_room(t->c, LOOK_AHEAD))
        note_full(k, true);
}

int log_take_chunk(struct txn *t, uint32_t *chunk)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t needed = 1 + k->reserve;
    if (k->is_full && k->taken - k->full_at >= FULL_CHUNKS)
        (void)grow(t, 1);
    if (k->free.count < needed && chunks_wait(t))
        (void)log_reclaim(t); /* if it fails, the file grows */
    int error = have_free(t, needed);
    if (error != 0)
        return error;
    *chunk = k->free.items[--k->free.count];
    k->taken++;
    if (k->free.count < needed)
        look_ahead(t);
    log_note_needed(k, needed - 1);
    return 0;
}

void log_untake_chunk(struct txn *t, uint32_t chunk)
{
    add_free(log_engine_of(t), chunk);
}

uint32_t log_end_of_use(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t end = t->c->chunks;
    while (end > 1 && k->chunks[end - 1].end == 0)
        end--;
    return end;
}

int log_cut_off(struct txn *t, uint32_t end)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t count = 0; /* the highest are first */
    while (count < k->free.count && k->free.items[count] >= end)
        count++;
    k->free.count -= count;
    memmove(k->free.items, k->free.items + count, k->free.count * sizeof *k->free.items);
    k->known = end;
    return container_cut_chunks(t->c, end);
}
