/*
 * Recovery at open. The base epoch's word says which engine wrote the log. This engine's recovery runs,
 * whichever engine is going to be used. It costs as much as reading the log; the container's size does
 * not matter. Each step can be interrupted and repeated: until the base epoch is raised, the log says the
 * same as before.
 *
 *   1  The engine decides on the state to restore, makes durable what the decision rests on (U5, R5),
 *      and changes home.
 *   2  The changes are made durable, with the sums of the restored state and the guard.
 *   3  Then the base epoch is raised by a round of its own (U6), even if the log was empty. The same
 *      round writes the words that say which segments are log, and the mark that a writer has the
 *      file open.
 *
 * Nothing read from the medium is used before its checksum and its range were checked.
 */
#include "txn/recovery.h"

#include "base/error.h"
#include "txn/log/log.h"
#include "txn/sums.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

bool recovery_range_is_valid(const struct txn *t, uint64_t offset, uint64_t bytes, uint64_t unit)
{
    uint64_t first = (uint64_t)t->c->meta_segments << t->c->segment_shift;
    uint64_t end = container_bytes(t->c);
    return offset % unit == 0 && bytes % unit == 0 && offset >= first && offset < end &&
           bytes <= end - offset;
}

bool recovery_word_is_valid(const struct txn *t, uint64_t offset)
{
    bool journaled = is_table_word(t->c, offset) ||
                     offset - t->root.offset < 2 * sizeof(uint64_t) ||
                     offset - FORMAT_MODULES < FORMAT_MODULES_MAX * sizeof(struct format_module);
    return (journaled && offset % sizeof(uint64_t) == 0) ||
           recovery_range_is_valid(t, offset, sizeof(uint64_t), sizeof(uint64_t));
}

int recovery_check_state(const struct txn *t)
{
    const struct format_state *state = file_state(t->c);
    const struct format_guard *guard = file_guard(t->c);
    uint64_t base = seal_payload(state->base_epoch) & ~BASE_REDO;
    const uint64_t *damaged = NULL;
    bool guarded = t->c->header.version >= FORMAT_VERSION;
    if (!seal_is_valid(state->base_epoch) || base == 0 || base > EPOCH_MAX)
        damaged = &state->base_epoch;
    else if (!seal_is_valid(state->fenced_epoch))
        damaged = &state->fenced_epoch;
    else if (!seal_is_valid(state->fenced_images))
        damaged = &state->fenced_images;
    else if (guarded && !sums_word_is_valid(state->sums))
        damaged = &state->sums;
    else if (guarded && (!seal_is_valid(guard->epoch) || guard->epoch == 0))
        damaged = &guard->epoch;
    if (!damaged && (!mark_is_valid(state->mark) || (guarded && state->mark == MARK_NONE)))
        return container_damaged(t->c, FORMAT_MARK,
                                 "the word that says who has the file open is damaged");
    if (!damaged)
        return 0;
    uint64_t offset = (uint64_t)((const char *)damaged - t->c->file);
    return container_damaged(t->c, offset, "a word about epochs is damaged");
}

int recovery_check_fenced(const struct txn *t, uint64_t epoch, uint64_t where)
{
    uint64_t fenced = seal_payload(file_state(t->c)->fenced_epoch);
    if (t->c->header.version >= FORMAT_VERSION)
        fenced = max_u64(fenced, seal_payload(file_guard(t->c)->epoch));
    if (fenced <= epoch)
        return 0;
    return pm__fail_at(t->c->path, where, EBADMSG,
                       "the log is damaged: epoch %" PRIu64 " was committed, but only %" PRIu64
                       " can be "
                       "restored; restore the file from a backup",
                       fenced, epoch);
}

int recovery_take_sums(struct txn *t, uint64_t word, uint64_t epoch, uint64_t where)
{
    if (t->c->header.version < FORMAT_VERSION)
        return 0;
    if (!sums_word_is_valid(word))
        return pm__fail_at(t->c->path, where, EBADMSG,
                           "the commit record of epoch %" PRIu64 " lacks the sums of its metadata; "
                           "restore the file from a backup",
                           epoch);
    t->sums = sums_of_word(word);
    return 0;
}

bool recovery_takes_log(const struct txn *t, const struct record_word *word)
{
    return is_table_word(t->c, word->offset) && word->value == 0 &&
           segment_kind(*home_word(t->c, word->offset)) == SEGMENT_LOG;
}

void void_log_in(const struct txn *t, struct format_state *state, uint64_t base)
{
    /* This word counts images of an epoch that ends here, so clear it. While the other engine is in use,
     * it does not store this word. Without the clearing, a later epoch with the same lower bits would
     * believe the old count. */
    __atomic_store_n(&state->fenced_images, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&state->base_epoch, seal(base | t->engine->log_bit), __ATOMIC_RELAXED);
}

int publish_base_epoch(struct txn *t, uint64_t base)
{
    struct format_state *state = file_state(t->c);
    uint64_t old_base = state->base_epoch, old_images = state->fenced_images;
    void_log_in(t, state, base);
    int error = medium_publish(&t->c->medium, state, offsetof(struct format_state, incarnation));
    if (error != 0) { /* the log still counts, and a page that is written later must not say otherwise */
        __atomic_store_n(&state->base_epoch, old_base, __ATOMIC_RELAXED);
        __atomic_store_n(&state->fenced_images, old_images, __ATOMIC_RELAXED);
    }
    return error;
}

int raise_base_epoch(struct txn *t, uint64_t newest)
{
    uint64_t base = newest + 4;
    int error = publish_base_epoch(t, base);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    t->epoch = base + 1;
    return error;
}

void set_file_mark(struct txn *t, uint64_t mark)
{
    __atomic_store_n(&file_state(t->c)->mark, mark, __ATOMIC_RELAXED);
}

int publish_file_mark(struct txn *t, uint64_t mark)
{
    set_file_mark(t, mark);
    int error = medium_publish(&t->c->medium, &file_state(t->c)->mark, sizeof mark);
    return error == 0 ? medium_fence(&t->c->medium) : error;
}

/*
 * A dead process may have claimed segments for the log without reaching a fence, or the fence has failed.
 * Then only the cache says that they belong to the log. Our records are going to lie there, so write these
 * words again.
 */
static int rewrite_claims(struct txn *t)
{
    int error = 0;
    for (int h = 0; h < 2; h++)
        for (uint32_t i = 0; i < t->log.half[h].count && error == 0; i++)
            error = medium_rewrite(&t->c->medium, home_table(t->c) + t->log.half[h].segments[i],
                                   sizeof(uint64_t));
    return error;
}

/* The engine that wrote the log, by the base epoch's word. */
static const struct engine *engine_of_log(uint64_t word)
{
    static const struct engine *const engines[] = {&engine_undo, &engine_redo};
    uint32_t i = 0;
    while (engines[i]->log_bit != (word & BASE_REDO))
        i++;
    return engines[i];
}

static int recover_home(struct txn *t)
{
    if (recovery_check_state(t) != 0)
        return -1;
    const struct format_state *state = file_state(t->c);
    uint64_t word = seal_payload(state->base_epoch);
    t->sums = sums_of_word(state->sums);
    struct recovered found;
    if (engine_of_log(word)->recover(t, word & ~BASE_REDO, &found) != 0)
        return -1;
    int error = 0;
    if (t->recovery.recovered) {
        error = sums_publish(t, found.restored);
        if (error == 0)
            error = medium_settle(&t->c->medium);
    }
    /* Do this even if the log was empty. A first commit of base + 1 may have been torn before its record,
     * and may have left images of base + 2, written ahead. */
    if (error == 0)
        error = rewrite_claims(t);
    if (error == 0) {
        set_file_mark(t, t->c->mark_open);
        error = raise_base_epoch(t, found.newest);
    }
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot write what recovery restored", t->c->path);
    return 0;
}

int recover(struct txn *t)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if ((t->c->is_log ? log_recover(t) : recover_home(t)) != 0)
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (t->recovery.recovered)
        t->recovery.ns =
            (uint64_t)((to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec);
    return 0;
}
