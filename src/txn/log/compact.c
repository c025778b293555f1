/*
 * Making the file shorter. Freed memory has pieces in the log. The newest piece of a line cannot just be
 * dropped: an older one in another chunk would come back. So a compaction leaves all old chunks at once
 * (L14):
 *
 *   1  Begin a generation, so that nothing written before looks like what is written from now on.
 *   2  Log again all lines of segments that are in use, chunk by chunk. These records are ordinary ones.
 *   3  Log one more record, with LOG_ANEW: pieces of older generations do not count. Its sum over the map is
 *      without the lines that only old chunks have. When it is durable, void these chunks.
 *   4  The new chunks may be at the file's end. Move them to its beginning, as the cleaner moves lines.
 *   5  Cut the file off.
 *
 * It may be interrupted anywhere. But no record may follow that of step 3 before the old chunks are void.
 * Newer records would soon take its place, and then recovery would count old pieces again.
 *
 * Home has what the log has, so the lines that are forgotten become zero there. No object is on them, and a
 * page that is taken for data gets what home has.
 */
#include "txn/log/deltas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Free chunks with which a step begins: a chunk's lines may need two, if they are logged in other runs. */
#define FREE_MIN (2 + LOG_RESERVE)
/* A file may be so much longer than needed, in shares of what is needed. */
#define SLACK_SHARE 8

static bool is_waiting(const struct log_engine *k)
{
    return k->emptied.count + k->voided.count > 0;
}

/* ---- which lines ----------------------------------------------------------------------------- */

/* Lines that have pieces, and words of these. */
struct usage {
    uint64_t lines, words;
};

static void add_usage(const struct txn *t, uint32_t segment, struct usage *in_use)
{
    const struct log_engine *k = log_engine_of(t);
    uint64_t line = ((uint64_t)segment << t->c->segment_shift) / PM_LINE;
    for (uint64_t end = line + t->c->segment_size / PM_LINE; line < end; line++) {
        in_use->lines += k->map[line] != 0;
        in_use->words += log_entry_size(k, k->map[line]);
    }
}

static struct usage find_usage(const struct txn *t)
{
    struct usage in_use = {0};
    for (uint32_t i = 0; i < t->c->segments_max; i++)
        if (table_word(home_table(t->c), i) != 0)
            add_usage(t, i, &in_use);
    return in_use;
}

/* Call `visit` for all lines of free segments that have pieces: `count` of them. Most of the map is beyond
 * them, and was never touched. */
static void visit_free(struct txn *t, uint64_t count, void (*visit)(struct txn *t, uint64_t line))
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t line = 0, end = t->c->max_size / PM_LINE; count > 0 && line < end; line++)
        if (k->map[line] != 0 && log_line_is_free(t, line)) {
            visit(t, line);
            count--;
        }
}

static void leave_sum(struct txn *t, uint64_t line)
{
    struct log_engine *k = log_engine_of(t);
    k->map_sum -= entry_term(k, log_line_hash(t->c->seed, line), k->map[line]);
}

static void forget(struct txn *t, uint64_t line)
{
    struct log_engine *k = log_engine_of(t);
    log_leave_line(t, k->map[line], t->epoch - 1);
    k->map[line] = 0;
    k->lines_live--;
    if (line < container_bytes(t->c) / PM_LINE)
        memset(t->c->home + line * PM_LINE, 0, PM_LINE);
}

/* ---- steps 1 to 3 ---------------------------------------------------------------------------- */

/* L4: the number is durable before the first record that has it. So are all commits. */
static int begin_generation(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    if (k->generation >= UINT32_MAX - 1) /* the last one is for pm_open() */
        return -EOVERFLOW;
    int error = rounds_sync(t, t->epoch - 1);
    if (error == 0)
        error = medium_publish_word(&t->c->medium, &file_state(t->c)->incarnation,
                                    seal(k->generation + 1));
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error != 0)
        return error;
    k->generation++;
    for (int stream = 0; stream < LOG_STREAMS; stream++)
        log_leave_chunk(t, (enum log_stream)stream, 0);
    return 0;
}

/* The file does not grow as long as there are chunks that nobody needs. */
static int reclaim_if_few(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return k->free.count < FREE_MIN && is_waiting(k) ? log_reclaim(t) : 0;
}

/* Then old chunks have no pieces that count but those of free lines. If they do, a part has rotted, and hid
 * its lines. */
static int log_lines_in_use(struct txn *t, uint64_t free_words)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t begin = t->epoch, left = 0;
    int error = 0;
    k->compacts = true;
    for (uint32_t i = 1; i < t->c->chunks && error == 0; i++)
        if (k->chunks[i].live > 0 && k->chunks[i].newest < begin) {
            error = reclaim_if_few(t);
            if (error == 0)
                error = log_empty_chunk(t, i);
            left += k->chunks[i].live;
        }
    k->compacts = false;
    return error == 0 && left != free_words ? -EBADMSG : error;
}

int log_end_compaction(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    int error = is_waiting(k) ? log_reclaim(t) : 0;
    k->forgets = error != 0;
    return error;
}

static int unmap_free(struct txn *t)
{
    const uint32_t pages = pages_per_segment(t->c);
    int error = 0;
    for (uint32_t i = 0; i < atomic_load(&t->c->segments) && error == 0; i++)
        if (table_word(home_table(t->c), i) == 0)
            error = log_unmap_range(t, i * pages, pages);
    return error;
}

static int forget_free_lines(struct txn *t, uint64_t lines)
{
    struct log_engine *k = log_engine_of(t);
    int error = reclaim_if_few(t);
    if (error == 0)
        error = unmap_free(t);
    if (error != 0)
        return error;
    uint64_t sum = k->map_sum;
    visit_free(t, lines, leave_sum);
    error = log_anew(t);
    if (error != 0) {
        k->map_sum = sum;
        return error;
    }
    visit_free(t, lines, forget);
    k->forgets = true;
    return log_end_compaction(t);
}

static int write_anew(struct txn *t, const struct usage *in_use)
{
    const struct log_engine *k = log_engine_of(t);
    uint64_t free_lines = k->lines_live - in_use->lines, free_words = k->words_live - in_use->words;
    int error = begin_generation(t);
    if (error == 0)
        error = log_lines_in_use(t, free_words);
    return error == 0 ? forget_free_lines(t, free_lines) : error;
}

/* ---- steps 4 and 5 --------------------------------------------------------------------------- */

static int compare_descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static int move_to_beginning(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    int error = 0;
    log_leave_chunk(t, LOG_CLEANER, 0);
    qsort(k->free.items, k->free.count, sizeof *k->free.items, compare_descending);
    for (uint32_t i = t->c->chunks; i-- > 1 && error == 0;) {
        if (k->free.count < FREE_MIN || k->free.items[k->free.count - 1] > i)
            break;
        if (k->chunks[i].live > 0 && !log_is_open(k, i))
            error = log_empty_chunk(t, i);
    }
    return error == 0 && is_waiting(k) ? log_reclaim(t) : error;
}

/* Keep what the next commit takes without growth. */
static int cut_off(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t used = 0, kept = 0, end = t->c->chunks;
    for (uint32_t i = 1; i < end; i++)
        if (k->chunks[i].end > 0)
            used = i;
    uint32_t spare = 1 + LOG_RESERVE, free_below = 0;
    for (uint32_t i = 0; i < k->free.count; i++)
        free_below += k->free.items[i] < used;
    end = (uint32_t)min_u64(end, used + 1 + spare - min_u64(spare, free_below));
    for (uint32_t i = 0; i < k->free.count; i++)
        if (k->free.items[i] < end)
            k->free.items[kept++] = k->free.items[i];
    k->free.count = kept;
    k->known = end;
    k->victim = 0;
    return container_cut_chunks(t->c, end);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* A file that is little longer than needed stays as it is. Scattered lines take 9/8 of their number. */
static bool is_worth_while(const struct txn *t, uint64_t lines)
{
    uint64_t needed = divide_up(lines + lines / PM_LINE_WORDS, chunk_lines(t) - 1) + 1 + FREE_MIN;
    return t->c->chunks > needed + needed / SLACK_SHARE;
}

int log_compact(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    const struct usage in_use = find_usage(t);
    if (!is_worth_while(t, in_use.lines))
        return 0;
    int error = write_anew(t, &in_use);
    if (error != 0 && (k->forgets || !log_lacks_room(error)))
        return error;
    int further =
        move_to_beginning(t); /* even if there was no room: some is at the file's end, perhaps */
    if (further == 0)
        further = cut_off(t);
    return error == 0 ? further : error;
}
