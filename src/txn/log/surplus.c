/*
 * A file that is longer than needed gets shorter by itself: free chunks at its end are cut off. The file
 * system has their blocks again, and an SSD may forget them. A hole in the middle would not do. No file has
 * holes, for a store to one may meet a full disk.
 *
 *                                        the least that was idle
 *   chunks taken: │ · · · · window · · · · │ · · · · window · · · · │ ──► more than KEPT_SHARE: cut off
 *
 * Chunks are surplus if nobody needed them while a share of the file was filled anew. What a commit needs now
 * and then, or has reserved, is no surplus. Who grows the file again waits for the file system.
 *
 * Invariants
 *  S1  What is cut off is void, and a fence has passed since. So recovery misses nothing.
 *  S2  The checkpoint that is named knows no chunk that is cut off, nor does the one that is being made. A
 *      root says what each chunk has, up to the last one in use (checkpoint.c).
 *
 * If the last chunk is in use, the cleaner empties it, for the next window. A checkpoint writes the images
 * again that are there.
 */
#include "txn/log/log.h"

/* A window: so many chunks are taken, or a share of those of the file. */
#define WINDOW_MIN   16
#define WINDOW_SHARE 8

/* This share of the file may be idle for ever. */
#define KEPT_SHARE 8

/* A commit cuts off no more: the kernel takes a millisecond for some MiB. */
#define CUT_BYTES_MAX (UINT64_C(2) << 20)

void log_note_needed(struct log_engine *k, uint64_t count)
{
    k->spare = (uint32_t)min_u64(k->spare, k->free.count - min_u64(k->free.count, count));
}

/* S2; and the file is no shorter than the program wants it. */
static uint32_t least_chunks(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    const struct checkpoint *c = &k->checkpoint;
    uint32_t known = c->phase == CHECKPOINT_NONE ? 0 : c->next.chunks;
    return (uint32_t)max_u64(max_u64(known, c->named.chunks), k->chunks_min);
}

/* Free chunks to cut off; negative: none. A compaction may have cut off some. */
static int64_t surplus(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return (int64_t)min_u64(k->spare, k->free.count) - t->c->chunks / KEPT_SHARE;
}

bool log_has_surplus(const struct txn *t)
{
    return surplus(t) > 0;
}

/* Not beside a copy. On a full disk the room might be gone for ever. And what a failed record has left in a
 * free chunk must still be erased there. */
static bool may_cut(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return !t->copy && !k->is_full && k->stale.count == 0;
}

/* Cut up to `most` chunks off, if the last ones are free. Returns how many. */
static uint32_t cut(struct txn *t, uint32_t most)
{
    struct log_engine *k = log_engine_of(t);
    const uint32_t before = t->c->chunks, least = least_chunks(t);
    uint32_t count = 0;
    while (count < most && before - count > least && k->free.items[count] == before - count - 1)
        count++;
    if (count > 0) {
        k->spare -= count;
        (void)log_cut_off(t, before - count); /* if the file stays longer, no harm is done */
    }
    return count;
}

static uint64_t most_at_once(const struct txn *t)
{
    return max_u64(1, CUT_BYTES_MAX / t->c->chunk_size);
}

void log_cut_surplus(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t window = max_u64(WINDOW_MIN, t->c->chunks / WINDOW_SHARE);
    if (k->taken - k->spare_since < window)
        return;
    if (log_has_surplus(t) && may_cut(t)) {
        uint64_t most = most_at_once(t);
        if (cut(t, (uint32_t)min_u64((uint64_t)surplus(t), most)) == most)
            return; /* the next commit goes on */
        log_clean_last(t);
    }
    k->spare = k->free.count;
    k->spare_since = k->taken;
}
