/*
 * The log of the redo engine: a set of segments, in no order. A new record begins where the last record
 * ended. If its segment is full, the record continues in any segment whose records are no longer needed.
 * If there is no such segment, the log grows. Recovery walks each segment from its start to find the
 * parts, and orders the parts by their epochs.
 *
 * Invariants
 *  G1  The parts of a segment have ascending epochs. They begin at the segment's first byte and have no
 *      gaps. The first invalid or void part ends them.
 *
 *  G2  A segment is written from its start again only when `reusable` has passed its newest epoch (R4, R12).
 *      Then the lines of its records are home, and a later round has fenced them. The rest of the
 *      log, or the base epoch, says that these epochs are durable.
 *
 *  G3  A segment is claimed only when all committed epochs are durable. (Only on a file this may take
 *      waiting.) Before, the segment's old contents may be live in the last durable state.
 */
#define _GNU_SOURCE
#include "txn/redo/redo.h"

#include "base/checksum.h"
#include "base/error.h"
#include "txn/recovery.h"
#include "txn/sums.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* On a file the log may take FILE_LOG_BYTES before pages of home must be written to the file. But it
 * takes at most 1/FILE_LOG_SHARE of the container. */
#define FILE_LOG_BYTES (UINT64_C(16) << 20)
#define FILE_LOG_SHARE 8
/* Pages of home written to the file at once, and bytes of log between two such writes. */
#define TRICKLE_PAGES 256
#define TRICKLE_BYTES (UINT64_C(128) << 10)
/* Segments that stay in the log, in addition to the segments that recent records needed. */
#define KEPT_MIN 2

int redo_log_load(struct txn *t)
{
    struct redo_log *log = &redo_of(t)->log;
    *log = (struct redo_log){.segment = t->log.half[0].segments[0],
                             .newest =
                                 tables_take(&t->c->tables, t->c->segments_max * sizeof(uint64_t)),
                             .stage = aligned_alloc(PM_LINE, REDO_PART_MAX)};
    return log->stage ? 0 : pm__fail_system(ENOMEM, "%s: no memory for its log", t->c->path);
}

void redo_log_unload(struct txn *t)
{
    free(redo_of(t)->log.stage);
}

/* ---- space ----------------------------------------------------------------------------------- */

static uint32_t segments_in_log(const struct txn *t)
{
    return t->log.half[0].count + t->log.half[1].count;
}

static uint32_t log_segment(const struct txn *t, uint32_t i)
{
    uint32_t first = t->log.half[0].count;
    return i < first ? t->log.half[0].segments[i] : t->log.half[1].segments[i - first];
}

static bool is_void(const struct txn *t, uint32_t segment)
{
    const struct redo *r = redo_of(t);
    return segment != r->log.segment && r->log.newest[segment] <= atomic_load(&t->rounds.reusable);
}

/* There is a void segment: redo_log_reserve() has made sure of it. */
static uint32_t find_void(const struct txn *t)
{
    for (uint32_t i = 0;; i++) {
        assert(i < segments_in_log(t));
        if (is_void(t, log_segment(t, i)))
            return log_segment(t, i);
    }
}

static uint32_t count_void(const struct txn *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < segments_in_log(t); i++)
        n += is_void(t, log_segment(t, i));
    return n;
}

/* Bytes of a stream that the next part can take from a segment with `room` bytes left; 0 if none. */
static uint64_t part_bytes(uint64_t room, uint64_t left)
{
    uint64_t most = min_u64(room, REDO_PART_MAX);
    return most > sizeof(struct redo_part) ? min_u64(left, most - sizeof(struct redo_part)) : 0;
}

/* Bytes of a stream that `room` bytes can hold, if `left` bytes of the stream remain. */
static uint64_t stream_in(uint64_t room, uint64_t left)
{
    uint64_t taken = 0, bytes;
    while (taken < left && (bytes = part_bytes(room, left - taken)) > 0) {
        taken += bytes;
        room -= align_up(sizeof(struct redo_part) + bytes, PM_LINE);
    }
    return taken;
}

/* Bytes left in the current segment. */
static uint64_t room(const struct txn *t)
{
    return t->c->segment_size - redo_of(t)->log.end;
}

/* Whole segments that a record of `total` bytes needs after the current segment. */
static uint32_t segments_needed(const struct txn *t, uint64_t total)
{
    uint64_t size = t->c->segment_size;
    uint64_t left = total - stream_in(room(t), total);
    return left == 0 ? 0 : (uint32_t)divide_up(left, stream_in(size, UINT64_MAX));
}

static uint32_t file_segments(const struct txn *t)
{
    uint64_t bytes = min_u64(FILE_LOG_BYTES, t->c->max_size / FILE_LOG_SHARE);
    return (uint32_t)(bytes >> t->c->segment_shift);
}

/* Write zeros over a new segment of a file. Its blocks are allocated but unwritten. The first write to
 * each such block would cost the file system a transaction of its own, and a commit would wait for it. */
static int write_zeros(struct txn *t, uint32_t segment)
{
    static const char zeros[1 << 16];
    char *at = t->c->home + ((uint64_t)segment << t->c->segment_shift);
    for (uint64_t done = 0; done < t->c->segment_size; done += sizeof zeros) {
        int error = t->c->medium.ops->copy(&t->c->medium, at + done, zeros, sizeof zeros);
        if (error != 0)
            return error;
    }
    return 0;
}

static int claim(struct txn *t)
{
    int error = rounds_sync(t, atomic_load(&t->rounds.committed)); /* G3 */
    if (error == 0)
        error = segments_claim_log(t, 1);
    if (error != 0)
        return error;
    const struct log_half *half = &t->log.half[1];
    uint32_t segment = half->segments[half->count - 1];
    redo_of(t)->log.newest[segment] = 0;
    return redo_on_file(t) ? write_zeros(t, segment) : 0;
}

int redo_log_drain(struct txn *t)
{
    struct redo *r = redo_of(t);
    uint64_t committed = atomic_load(&t->rounds.committed);
    int error = rounds_sync(t, committed);
    int64_t written = error == 0 ? queue_write(&t->c->medium, UINT64_MAX, committed) : 0;
    if (error != 0 || written < 0)
        return error != 0 ? error : (int)written;
    error = sums_publish(t, committed);
    if (error == 0)
        error = rounds_fence(t);
    if (error == 0)
        error = publish_base_epoch(t, committed);
    if (error != 0)
        return error;
    atomic_store(&t->rounds.proved, committed);
    r->log.end = 0;
    return rounds_fence(t);
}

/* Make room for all segments first: the record does not fit into only some of them. */
static int claim_all(struct txn *t, uint32_t count)
{
    int error = segments_make_room(t, count);
    for (; count > 0 && error == 0; count--)
        error = claim(t);
    return error;
}

/* How many of the `missing` segments to claim. Before a drain, the log of a file must not grow beyond
 * file_segments(). */
static uint32_t claimable(const struct txn *t, uint32_t missing, bool drained)
{
    uint32_t most = file_segments(t), has = segments_in_log(t);
    if (drained)
        return missing;
    return has < most ? (uint32_t)min_u64(missing, most - has) : 0;
}

static int reserve(struct txn *t, uint64_t total)
{
    uint32_t needed = segments_needed(t, total), is_void;
    bool drained = !redo_on_file(t);
    int error = 0;
    while (error == 0 && needed > 0 && (is_void = count_void(t)) < needed) {
        uint32_t count = claimable(t, needed - is_void, drained);
        error = count > 0 ? claim_all(t, count) : -ENOSPC;
        if ((error == -ENOSPC || error == -EDQUOT) && !drained) {
            drained = true;
            error = redo_log_drain(t);
            needed = segments_needed(t, total);
        }
    }
    return error;
}

int redo_log_reserve(struct txn *t, uint64_t total)
{
    uint32_t claimed = t->log.half[1].count, segments = atomic_load(&t->c->segments);
    int error = reserve(t, total);
    if (error != 0) {
        segments_unclaim_log(t, 1, claimed);
        txn_cut_tail(t, segments);
    }
    return error;
}

uint32_t redo_log_shrink(struct txn *t, uint64_t total)
{
    struct redo_log *log = &redo_of(t)->log;
    uint32_t before = segments_in_log(t);
    if (before <= KEPT_MIN)
        return 0;
    uint32_t needed = segments_needed(t, total);
    log->peak =
        needed >= log->peak ? needed : log->peak - (uint32_t)divide_up(log->peak - needed, 4);
    uint64_t keep = max_u64(log->peak + KEPT_MIN, redo_on_file(t) ? file_segments(t) : 0);
    for (int h = 0; h < 2; h++) {
        struct log_half *half = &t->log.half[h];
        while (half->count > 1 && segments_in_log(t) > keep && count_void(t) > needed &&
               is_void(t, half->segments[half->count - 1]))
            journal_set(&t->journal, &t->table, half->segments[--half->count], 0);
    }
    return before - segments_in_log(t);
}

/* ---- writing --------------------------------------------------------------------------------- */

uint64_t redo_part_sum(const struct container *c, const struct redo_part *part, uint64_t offset)
{
    return checksum_mix(checksum(part, sizeof *part + part->bytes, 0), c->seed, offset);
}

/* Begin the next part. If the current segment is full, begin it in a void one. */
static void begin_part(struct txn *t)
{
    struct redo_log *log = &redo_of(t)->log;
    uint64_t left = log->total - log->written, bytes = part_bytes(room(t), left);
    if (bytes == 0) {
        log->segment = find_void(t);
        log->end = 0;
        bytes = part_bytes(room(t), left);
    }
    log->put = log->stage + sizeof(struct redo_part);
    log->full = log->put + bytes;
    /* copying whole lines is cheaper, so zeros fill the last line */
    memset(log->stage + align_up(sizeof(struct redo_part) + bytes, PM_LINE) - PM_LINE, 0, PM_LINE);
}

void redo_log_begin(struct txn *t, const struct redo_part *head)
{
    struct redo_log *log = &redo_of(t)->log;
    log->head = *head;
    log->total = head->total;
    log->written = 0;
    log->error = 0;
    log->first_segment = log->segment;
    log->first_end = log->end;
    begin_part(t);
    log->first_part = ((uint64_t)log->segment << t->c->segment_shift) + log->end;
}

void redo_log_flush(struct txn *t)
{
    struct redo_log *log = &redo_of(t)->log;
    struct redo_part *part = (struct redo_part *)log->stage;
    uint64_t at = ((uint64_t)log->segment << t->c->segment_shift) + log->end;
    uint64_t size = (uint64_t)(log->full - log->stage), padded = align_up(size, PM_LINE);
    log->head.bytes = (uint32_t)(size - sizeof *part);
    log->head.checksum = 0;
    *part = log->head;
    part->checksum = redo_part_sum(t->c, part, at);
    int error = medium_copy(&t->c->medium, t->c->home + at, part, padded);
    if (log->error == 0)
        log->error = error;
    log->newest[log->segment] = log->head.epoch;
    log->head.previous = part->checksum;
    log->head.number++;
    log->end += padded;
    log->since_write += padded;
    log->written += log->head.bytes;
    if (log->written < log->total)
        begin_part(t);
}

void redo_log_fill(struct txn *t, const void *from, uint64_t size)
{
    struct redo_log *log = &redo_of(t)->log;
    while (size > 0) {
        uint64_t n = min_u64(size, (uint64_t)(log->full - log->put));
        assert(n > 0);
        memcpy(log->put, from, n);
        log->put += n;
        from = (const char *)from + n;
        size -= n;
        if (log->put == log->full)
            redo_log_flush(t);
    }
}

/* Erase the head of a record that could not be written. What is missing of it may be zero, as the file is
 * there: then the record is whole, and would count after a crash. Nor may it stay beside the next record,
 * which has the same epoch and may begin elsewhere. */
int redo_log_retract(struct txn *t)
{
    static const struct redo_part nothing;
    struct medium *medium = &t->c->medium;
    struct redo_log *log = &redo_of(t)->log;
    if (log->stale == 0)
        return 0;
    int error = medium_copy(medium, t->c->home + log->stale, &nothing, sizeof nothing);
    if (error == 0)
        error = medium_fence(medium);
    if (error == 0)
        log->stale = 0;
    return error;
}

int redo_log_end(struct txn *t)
{
    struct redo_log *log = &redo_of(t)->log;
    if (log->error == 0)
        return 0;
    log->stale = log->first_part;
    (void)redo_log_retract(t);
    for (uint32_t i = 0; i < segments_in_log(t);
         i++) { /* segments that the record began are void again */
        uint32_t segment = log_segment(t, i);
        if (segment != log->first_segment && log->newest[segment] == log->head.epoch)
            log->newest[segment] = 0;
    }
    log->segment = log->first_segment;
    log->end = log->first_end;
    return log->error;
}

void redo_log_unshrink(struct txn *t)
{
    for (int h = 0; h < 2; h++) {
        struct log_half *half = &t->log.half[h];
        const uint64_t *home = home_table(t->c);
        /* Segments that shrinking took off the list's end still stand behind its end. */
        for (uint32_t i;
             i = half->segments[half->count],
             i != 0 && home[i] == segment_log_word((unsigned)h, segment_argument(home[i])) &&
                 shadow_table(t->c)[i] == 0;
             half->count++)
            journal_set(&t->journal, &t->table, i, home[i]);
    }
}

int redo_log_trickle(struct txn *t)
{
    struct redo *r = redo_of(t);
    uint32_t used = segments_in_log(t) - count_void(t);
    if (2 * used <= file_segments(t) || r->log.since_write < TRICKLE_BYTES)
        return 0;
    r->log.since_write = 0;
    int64_t written = queue_write(&t->c->medium, TRICKLE_PAGES, atomic_load(&t->rounds.durable));
    return written < 0 ? (int)written : 0;
}
