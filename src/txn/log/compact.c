/*
 * Making the file shorter. What was freed has left its chunks already (owners.c). So chunks are partly empty,
 * and they are in any order:
 *
 *   1  Log the lines of chunks that are partly empty again, one chunk after the other.
 *   2  Log the lines of chunks at the file's end again, as long as there are free ones before them.
 *   3  Cut the file off.
 *
 * The checkpoint is given up first, and the close makes another one.
 *
 * All records are ordinary ones of the cleaner, so this may be interrupted anywhere. Each step needs the two
 * chunks of the reserve at most. So it works on a full disk too, other than the moves of objects before it.
 */
#include "txn/log/deltas.h"

#include <errno.h>

/* Free chunks with which a step begins: a chunk's lines may need two, if they are logged in other runs. */
#define FREE_MIN 2
/* A chunk is left if at most this share of it is empty. Scattered lines of a full chunk take 8/9 of it. */
#define EMPTY_SHARE 8
/* A file may be so much longer than needed, in shares of what is needed. */
#define SLACK_SHARE 8

/* Make the chunks free that only wait. */
static int reclaim(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return k->emptied.count + k->voided.count > 0 ? log_reclaim(t) : 0;
}

/* If some of it is live afterwards, a part has rotted, and hid its lines. */
static int empty_chunk(struct txn *t, uint32_t chunk)
{
    const struct log_engine *k = log_engine_of(t);
    int error = k->free.count < FREE_MIN ? reclaim(t) : 0;
    if (error == 0)
        error = log_empty_chunk(t, chunk);
    return error == 0 && k->chunks[chunk].live > 0 ? -EBADMSG : error;
}

/* Step 1. What it logs goes to chunks that are free, or new: these are dense. */
static int empty_sparse(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    const uint32_t words = chunk_lines(t) * PM_LINE_WORDS;
    const uint64_t begin = t->epoch;
    int error = 0;
    for (uint32_t i = 1; i < t->c->chunks && error == 0; i++) {
        const struct chunk *h = &k->chunks[i];
        if (h->live > 0 && h->live < words - words / EMPTY_SHARE && h->newest < begin)
            error = empty_chunk(t, i);
    }
    return error;
}

/* ---- steps 2 and 3 --------------------------------------------------------------------------- */

static int move_to_beginning(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    log_leave_chunk(t, LOG_CLEANER, 0);
    int error = reclaim(t);
    for (uint32_t i = t->c->chunks; i-- > 1 && error == 0;) {
        if (k->free.count < FREE_MIN || k->free.items[k->free.count - 1] > i)
            break;
        if (k->chunks[i].live > 0 && !log_is_open(k, i))
            error = empty_chunk(t, i);
    }
    return error == 0 ? reclaim(t) : error;
}

/* Keep what the next commit takes without growth. */
static int cut_off(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t used = log_end_of_use(t), spare = 1 + LOG_RESERVE, free_below = 0;
    for (uint32_t i = 0; i < k->free.count; i++)
        free_below += k->free.items[i] < used;
    k->victim = 0;
    return log_cut_off(t,
                       (uint32_t)min_u64(t->c->chunks, used + spare - min_u64(spare, free_below)));
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The next commits take chunks from the beginning of the file. */
static void leave_chunks(struct txn *t)
{
    for (int stream = 0; stream < LOG_STREAMS; stream++)
        log_leave_chunk(t, (enum log_stream)stream, 0);
}

/* A file that is little longer than needed stays as it is. */
static bool is_worth_while(const struct txn *t)
{
    uint64_t words = log_engine_of(t)->words_live, in_chunk = chunk_lines(t) * PM_LINE_WORDS;
    uint64_t needed = divide_up(words + words / EMPTY_SHARE, in_chunk) + 2 + LOG_RESERVE +
                      log_chunks_of_images(t); /* the close writes images again */
    return t->c->chunks > needed + needed / SLACK_SHARE;
}

int log_compact(struct txn *t)
{
    if (!is_worth_while(t))
        return 0;
    leave_chunks(t);
    int error = log_has_checkpoint(t) ? log_give_up_checkpoint(t) : 0;
    if (error == 0)
        error = empty_sparse(t);
    if (error == 0)
        error = move_to_beginning(t);
    return error == 0 ? cut_off(t) : error;
}
