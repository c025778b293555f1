/* What the transaction layer can check of a file: segment table, root, epochs, page states. */
#include "txn/txn.h"

#include "base/error.h"
#include "container/contents.h"
#include "txn/recovery.h"

#include <errno.h>
#include <inttypes.h>

/* True if the argument of a table word is valid at this segment. `*run` has the number of segments that
 * the large object before it still claims; it counts down over SEGMENT_MORE words. */
static bool word_is_valid(const struct container *c, uint32_t segment, uint64_t word, uint32_t *run,
                          uint32_t *run_first)
{
    enum segment_kind kind = segment_kind(word);
    uint64_t argument = segment_argument(word);
    if ((segment < c->meta_segments) != (kind == SEGMENT_META) ||
        (*run > 0) != (kind == SEGMENT_MORE))
        return false;
    switch (kind) {
    case SEGMENT_FREE:
        return word == 0;
    case SEGMENT_META:
    case SEGMENT_LOG:
        return true;
    case SEGMENT_SLAB:
        return contents_shape(c, word, &(struct slab_shape){0});
    case SEGMENT_LARGE:
        *run_first = segment;
        *run = (uint32_t)argument - 1;
        return argument > 0 && argument <= c->segments_max - segment;
    case SEGMENT_MORE:
        (*run)--;
        return argument == segment - *run_first;
    case SEGMENT_MAP:
        return argument < format_map_groups(c->segments_max);
    }
    return false;
}

/* The end of the range in which to look for wrong words. Usually only zeros follow the words of the
 * file's segments. The first word behind them shows whether a large object was cut off. */
static uint32_t table_end(const struct container *c, uint32_t segments)
{
    uint64_t beyond = 0;
    for (uint32_t i = segments; i < c->segments_max; i++)
        beyond |= home_table(c)[i];
    return beyond != 0 ? c->segments_max : (uint32_t)min_u64(segments + 1, c->segments_max);
}

int txn_check_table(const struct container *c, bool recovered)
{
    uint32_t segments = atomic_load(&c->segments), run = 0, run_first = 0;
    for (uint32_t i = 0, end = table_end(c, segments); i < end; i++) {
        uint64_t word = home_table(c)[i], offset = FORMAT_TABLE + i * sizeof word;
        if (i >= segments && (word != 0 || run > 0))
            return pm__fail_at(c->path, container_bytes(c), EBADMSG,
                               "truncated, segment %u is in use beyond the end of the file; "
                               "restore the file from a backup",
                               i);
        if (!seal_is_valid(word) || (recovered && !word_is_valid(c, i, word, &run, &run_first)))
            return pm__fail_at(c->path, offset, EBADMSG,
                               "the word of segment %u in the segment table is damaged; restore "
                               "the file from a backup",
                               i);
    }
    return 0;
}

int txn_check_root(const struct txn *t)
{
    const uint64_t *root = home_word(t->c, t->root.offset);
    for (uint32_t i = 0; i < ROOT_WORDS; i++)
        if (!seal_is_valid(root[i]) || seal_payload(root[i]) >= container_bytes(t->c))
            return container_damaged(t->c, t->root.offset + i * sizeof *root,
                                     "the root's word is damaged");
    return 0;
}

/* Under the page lock, because the log claims segments while another thread stores. */
static int check_locked(struct txn *t)
{
    const struct container *c = t->c;
    uint32_t segments = atomic_load(&c->segments), log[2] = {0, 0};
    if (txn_check_table(c, true) != 0)
        return -1;
    if (recovery_check_state(t) != 0)
        return -1;
    unsigned open = t->engine->in_place ? PAGE_LOGGED | PAGE_FRESH : PAGE_PRIVATE;
    if (!pages_are_valid(&t->pages, t->tracker.stores ? 0 : open))
        return pm__fail(EBADMSG, "%s: the page states contradict each other: a bug of libpm",
                        c->path);
    for (uint32_t i = 0; i < segments; i++) {
        uint64_t word = shadow_table(c)[i];
        if ((i < t->table.low || i >= t->table.high) && home_table(c)[i] != word)
            return pm__fail_at(c->path, FORMAT_TABLE + i * sizeof word, EBADMSG,
                               "the segment table has changed outside any transaction; restore the "
                               "file from a backup");
        if (segment_kind(word) == SEGMENT_LOG)
            log[segment_log_half(word)]++;
    }
    if (log[0] != t->log.half[0].count || log[1] != t->log.half[1].count)
        return container_damaged(c, FORMAT_TABLE, "the log's segments are not those of the table");
    return 0;
}

int txn_check_log(struct txn *t)
{
    if (!t->engine->check)
        return 0;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int result = t->engine->check(t);
    lock_release_masked(&t->lock, &saved);
    return result;
}

int txn_check(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int result = check_locked(t);
    lock_release_masked(&t->lock, &saved);
    return result;
}
