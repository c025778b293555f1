/*
 * Recovery from the redo engine's log: see txn/recovery.c for what comes before and after.
 *
 *   1  Walk each segment of the log from its start, and put parts together to records.
 *   2  Find the newest record that holds. Epochs up to the newest `fenced` of any record are certain.
 *      Later epochs were in the last round, and each is tested (R2).
 *   3  Make durable what steps 1 and 2 read (R5).
 *   4  Replay from that record to the oldest of an unbroken run of epochs. Write each word of home once:
 *      skip a line, a journaled word or a fresh range that a newer record owns (R3).
 *
 * U10 holds here too: a segment that is log stays log, and nothing is replayed into it. The log claimed
 * the segment after the record that would write there.
 *
 * A forged log cannot make recovery cost more than an honest log can. At most one record has fresh ranges
 * to test (R11), and these ranges do not cover home many times over. If ranges are cleared again and
 * again, replay skips them line by line.
 */
#include "txn/recovery.h"
#include "txn/redo/redo.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/vector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct record {
    const struct redo_part *head;
    char *stream; /* owned by this record; put together when it is needed */
};

struct log_reader {
    struct txn *t;
    /* const struct redo_part *: sorted by epoch, number, and checksum of the part before */
    struct vector parts;
    struct redo_part *copy; /* room for one part; owned */
    int error;              /* of the first write that failed, -errno */
    uint8_t *owned;         /* a byte a line of home, a bit a word: a newer record wrote it */
};

static const struct redo_part *part_at(const struct log_reader *r, uint64_t i)
{
    return ((const struct redo_part **)r->parts.items)[i];
}

static uint64_t offset_of(const struct txn *t, const void *in_home)
{
    return (uint64_t)((const char *)in_home - t->c->home);
}

static int no_memory(const struct txn *t)
{
    return pm__fail_system(ENOMEM, "%s: no memory to read the log", t->c->path);
}

/* Threads that mark a line at the same moment each list it. So the fresh ranges of an honest record may
 * have more bytes than the container, but at most FRESH_TIMES as many. */
#define FRESH_TIMES 16

/* ---- parts ----------------------------------------------------------------------------------- */

static bool part_is_valid(const struct log_reader *r, const struct redo_part *part, uint64_t room,
                          uint64_t base)
{
    if (room < sizeof *part || part->epoch <= base || part->epoch > EPOCH_MAX ||
        part->fenced >= part->epoch || part->bytes == 0 || part->bytes > room - sizeof *part ||
        part->bytes > REDO_PART_MAX - sizeof *part)
        return false;
    /* The checksum is computed with the checksum field zero. Use a copy, for recovery must not change the
     * log. */
    struct redo_part *copy = r->copy;
    memcpy(copy, part, sizeof *part + part->bytes);
    copy->checksum = 0;
    return redo_part_sum(r->t->c, copy, offset_of(r->t, part)) == part->checksum;
}

static int add_part(struct log_reader *r, const struct redo_part *part)
{
    const struct redo_part **added = vector_push(&r->parts, sizeof(void *));
    if (!added)
        return no_memory(r->t);
    *added = part;
    return 0;
}

static int walk_segment(struct log_reader *r, uint32_t segment, uint64_t base)
{
    const struct container *c = r->t->c;
    const char *start = c->home + ((uint64_t)segment << c->segment_shift);
    uint64_t at = 0, epoch = 0;
    for (;;) {
        const struct redo_part *part = (const struct redo_part *)(start + at);
        if (at >= c->segment_size || !part_is_valid(r, part, c->segment_size - at, base) ||
            part->epoch < epoch)
            return 0;
        if (add_part(r, part) != 0)
            return -1;
        epoch = part->epoch;
        at += align_up(sizeof *part + part->bytes, PM_LINE);
    }
}

static int compare_parts(const void *a, const void *b)
{
    const struct redo_part *x = *(const struct redo_part *const *)a;
    const struct redo_part *y = *(const struct redo_part *const *)b;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->previous > y->previous) - (x->previous < y->previous);
}

static int read_parts(struct log_reader *r, uint64_t base)
{
    for (int h = 0; h < 2; h++)
        for (uint32_t i = 0; i < r->t->log.half[h].count; i++)
            if (walk_segment(r, r->t->log.half[h].segments[i], base) != 0)
                return -1;
    if (r->parts.count > 0)
        qsort(r->parts.items, r->parts.count, sizeof(void *), compare_parts);
    return 0;
}

/* The index of the first part that does not sort before part `number` of `epoch` with this `previous`. */
static uint64_t find_part(const struct log_reader *r, uint64_t epoch, uint32_t number,
                          uint64_t previous)
{
    const struct redo_part key = {.epoch = epoch, .number = number, .previous = previous};
    const struct redo_part *wanted = &key;
    uint64_t low = 0, high = r->parts.count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (compare_parts((const struct redo_part **)r->parts.items + middle, &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- records --------------------------------------------------------------------------------- */

/* The part that follows `before` in its record. A failed attempt to write the record may have left other
 * parts of the same number. */
static const struct redo_part *next_part(const struct log_reader *r, const struct redo_part *before)
{
    uint32_t number = before->number + 1;
    for (uint64_t i = find_part(r, before->epoch, number, before->checksum); i < r->parts.count;
         i++) {
        const struct redo_part *p = part_at(r, i);
        if (p->epoch != before->epoch || p->number != number || p->previous != before->checksum)
            return NULL;
        if (p->total == before->total)
            return p;
    }
    return NULL;
}

/* The arrays in a record's stream. */
struct arrays {
    const struct record_clear *clears;
    const struct record_word *words;
    const struct redo_fresh *fresh;
    const uint64_t *runs;
    const char *lines;
};

static struct arrays arrays_of(const struct record *record)
{
    struct arrays a;
    a.clears = (const struct record_clear *)record->stream;
    a.words = (const struct record_word *)(a.clears + record->head->clears);
    a.fresh = (const struct redo_fresh *)(a.words + record->head->words);
    a.runs = (const uint64_t *)(a.fresh + record->head->fresh);
    a.lines = (const char *)(a.runs + record->head->runs);
    return a;
}

static bool contents_are_valid(const struct txn *t, const struct record *record)
{
    const struct redo_part *head = record->head;
    uint64_t lines = 0, fresh = 0;
    if (redo_stream_bytes(head->clears, head->words, head->fresh, head->runs, 0) > head->total)
        return false;
    struct arrays a = arrays_of(record);
    for (uint32_t i = 0; i < head->clears; i++)
        if (!recovery_range_is_valid(t, a.clears[i].offset, a.clears[i].bytes, sizeof(uint64_t)) ||
            a.clears[i].bytes > t->c->segment_size)
            return false;
    for (uint32_t i = 0; i < head->words; i++)
        if (!recovery_word_is_valid(t, a.words[i].offset))
            return false;
    for (uint32_t i = 0; i < head->fresh; i++) {
        fresh += a.fresh[i].bytes;
        if (!recovery_range_is_valid(t, a.fresh[i].offset, a.fresh[i].bytes, PM_LINE) ||
            fresh > FRESH_TIMES * container_bytes(t->c))
            return false;
    }
    for (uint32_t i = 0; i < head->runs; i++) {
        if (!recovery_range_is_valid(t, run_line(a.runs[i]) * PM_LINE,
                                     run_count(a.runs[i]) * PM_LINE, PM_LINE))
            return false;
        lines += run_count(a.runs[i]);
    }
    return redo_stream_bytes(head->clears, head->words, head->fresh, head->runs, lines) ==
           head->total;
}

/* True if the parts from `head` on make up a whole record. */
static bool is_whole(const struct log_reader *r, const struct redo_part *head)
{
    uint64_t bytes = 0;
    for (const struct redo_part *p = head; p && bytes < head->total; p = next_part(r, p))
        bytes += p->bytes;
    return bytes == head->total;
}

/* The first part of an epoch's record, if the whole record is there. A failed attempt may have left a
 * first part too, but no whole record. */
static const struct redo_part *find_record(const struct log_reader *r, uint64_t epoch)
{
    for (uint64_t i = find_part(r, epoch, 0, 0);
         i < r->parts.count && part_at(r, i)->epoch == epoch && part_at(r, i)->number == 0; i++)
        if (is_whole(r, part_at(r, i)))
            return part_at(r, i);
    return NULL;
}

/*
 * Put the record of an epoch together. Returns 1; or 0 if it is missing or not whole; or -1 if memory
 * runs out, or if a whole record cannot be ours. The caller frees its stream.
 */
static int read_record(struct log_reader *r, uint64_t epoch, struct record *record)
{
    const struct redo_part *head = find_record(r, epoch);
    if (!head)
        return 0;
    *record = (struct record){head, malloc(head->total)};
    if (!record->stream)
        return no_memory(r->t);
    uint64_t bytes = 0;
    for (const struct redo_part *p = head; bytes < head->total; p = next_part(r, p)) {
        memcpy(record->stream + bytes, p + 1, p->bytes);
        bytes += p->bytes;
    }
    if (contents_are_valid(r->t, record))
        return 1;
    free(record->stream);
    return pm__fail_at(r->t->c->path, offset_of(r->t, head), EBADMSG,
                       "the commit record of epoch %" PRIu64 " refers beyond the end of the file: "
                       "truncated; restore the file from a backup",
                       epoch);
}

/* R2: the record holds if each of its fresh ranges has its checksum in home. */
static bool record_holds(const struct txn *t, const struct record *record)
{
    struct arrays a = arrays_of(record);
    for (uint32_t i = 0; i < record->head->fresh; i++)
        if (checksum(t->c->home + a.fresh[i].offset, a.fresh[i].bytes, 0) != a.fresh[i].sum)
            return false;
    return true;
}

/* Find the newest epoch whose record holds, and the newest epoch that is certain. Either is `base` if
 * there is no such epoch. -1 in case of an error. */
static int find_newest(struct log_reader *r, uint64_t base, uint64_t *certain, uint64_t *newest)
{
    *certain = base;
    for (uint64_t i = 0; i < r->parts.count; i++)
        *certain = max_u64(*certain, part_at(r, i)->fenced);
    *newest = *certain;
    for (;;) {
        struct record next;
        int found = read_record(r, *newest + 1, &next);
        if (found <= 0)
            return found;
        bool holds = record_holds(r->t, &next), has_fresh = next.head->fresh > 0;
        free(next.stream);
        *newest += holds;
        if (!holds ||
            has_fresh) /* R11: a record behind one with fresh ranges would call it certain */
            return 0;
    }
}

/* Call `visit` for every record of the run, newest first. */
static int for_each_record(struct log_reader *r, uint64_t base, uint64_t newest,
                           void (*visit)(struct log_reader *r, const struct record *record))
{
    for (uint64_t e = newest; e > base; e--) {
        struct record record;
        int found = read_record(r, e, &record);
        if (found <= 0)
            return found;
        visit(r, &record);
        free(record.stream);
    }
    return 0;
}

/* The first error stays. */
static void rewrite(struct log_reader *r, const void *address, uint64_t bytes)
{
    if (r->error == 0)
        r->error = medium_rewrite(&r->t->c->medium, address, bytes);
}

static void rewrite_fresh(struct log_reader *r, const struct record *record)
{
    struct arrays a = arrays_of(record);
    for (uint32_t i = 0; i < record->head->fresh; i++)
        rewrite(r, r->t->c->home + a.fresh[i].offset, a.fresh[i].bytes);
}

/*
 * R5. Before home changes, make durable the log and the segment table, which says what is log. Also make
 * durable the fresh ranges by which records were found to hold. Otherwise a power failure might lose a
 * fresh range but keep lines of its record. The next recovery would then go back to the epoch before.
 *
 * On a file all of this is written once more: see medium_rewrite().
 */
static int make_durable(struct log_reader *r, uint64_t certain, uint64_t newest)
{
    struct txn *t = r->t;
    rewrite(r, home_table(t->c), atomic_load(&t->c->segments) * sizeof(uint64_t));
    for (uint64_t i = 0; i < r->parts.count; i++)
        rewrite(r, part_at(r, i), sizeof *part_at(r, i) + part_at(r, i)->bytes);
    if (for_each_record(r, certain, newest, rewrite_fresh) != 0)
        return -1;
    int error = r->error == 0 ? medium_settle(&t->c->medium) : r->error;
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot make the log durable", t->c->path);
    return 0;
}

/* ---- replay ---------------------------------------------------------------------------------- */

static bool in_log(const struct txn *t, uint64_t offset)
{
    return segment_kind(home_table(t->c)[offset >> t->c->segment_shift]) == SEGMENT_LOG;
}

/* Own the word of home at `offset`; false if a newer record already owns it. */
static bool own_word(struct log_reader *r, uint64_t offset)
{
    uint8_t *line = &r->owned[offset / PM_LINE];
    uint8_t bit = (uint8_t)(1u << offset % PM_LINE / sizeof(uint64_t));
    bool was = *line & bit;
    *line |= bit;
    return !was;
}

/* True if `offset` is the start of a line that is wholly owned. */
static bool owns_line(const struct log_reader *r, uint64_t offset)
{
    return offset % PM_LINE == 0 && r->owned[offset / PM_LINE] == 0xff;
}

static void replay_words(struct log_reader *r, uint64_t offset, const void *from, uint64_t bytes)
{
    struct txn *t = r->t;
    for (uint64_t i = 0; i < bytes; i += sizeof(uint64_t))
        if (owns_line(r, offset + i))
            i += PM_LINE - sizeof(uint64_t);
        else if (own_word(r, offset + i) && !in_log(t, offset + i)) {
            uint64_t value = 0; /* a clear has no contents */
            if (from)
                memcpy(&value, (const char *)from + i, sizeof value);
            __atomic_store_n(home_word(t->c, offset + i), value, __ATOMIC_RELAXED);
        }
    medium_write_back(&t->c->medium, t->c->home + offset, bytes);
}

/* Make the segment table of home the table of the newest record. */
static void replay_table(struct log_reader *r, const struct record *record)
{
    struct txn *t = r->t;
    const struct record_word *words = arrays_of(record).words;
    for (uint32_t i = 0; i < record->head->words; i++) {
        if (!is_table_word(t->c, words[i].offset))
            continue;
        /* U10. The skipped word still hides the words of older records for the same place. */
        if (recovery_takes_log(t, &words[i]))
            own_word(r, words[i].offset);
        else
            replay_words(r, words[i].offset, &words[i].value, sizeof(uint64_t));
    }
}

static void replay_rest(struct log_reader *r, const struct record *record)
{
    struct txn *t = r->t;
    const struct redo_part *head = record->head;
    struct arrays a = arrays_of(record);
    /* Words before clears. In a record words apply after clears, so words must own their places first. */
    for (uint32_t i = 0; i < head->words; i++)
        if (!is_table_word(t->c, a.words[i].offset))
            replay_words(r, a.words[i].offset, &a.words[i].value, sizeof(uint64_t));
    for (uint32_t i = 0; i < head->clears; i++)
        replay_words(r, a.clears[i].offset, NULL, a.clears[i].bytes);
    for (uint32_t i = 0; i < head->fresh; i++)
        memset(r->owned + a.fresh[i].offset / PM_LINE, 0xff, a.fresh[i].bytes / PM_LINE);
    const char *lines = a.lines;
    for (uint32_t i = 0; i < head->runs; i++) {
        uint64_t bytes = run_count(a.runs[i]) * PM_LINE;
        replay_words(r, run_line(a.runs[i]) * PM_LINE, lines, bytes);
        lines += bytes;
        t->recovery.pages += divide_up(bytes, PM_PAGE);
    }
}

/* The offset where the next part would begin; without any part, where the first would. */
static uint64_t end_of_log(const struct log_reader *r)
{
    if (r->parts.count == 0)
        return (uint64_t)r->t->log.half[0].segments[0] << r->t->c->segment_shift;
    const struct redo_part *last = part_at(r, r->parts.count - 1);
    return offset_of(r->t, last) + align_up(sizeof *last + last->bytes, PM_LINE);
}

/* Take the sums of `epoch`, the epoch to restore, from its record. The log must have this record. */
static int take_sums(struct log_reader *r, uint64_t epoch)
{
    const struct redo_part *head = find_record(r, epoch);
    uint64_t where = head ? offset_of(r->t, head) : end_of_log(r);
    return recovery_take_sums(r->t, head ? head->previous : 0, epoch, where);
}

int redo_recover(struct txn *t, uint64_t base, struct recovered *found)
{
    struct log_reader r = {.t = t};
    uint64_t bytes = t->c->max_size / PM_LINE;
    r.owned = map_table(bytes);
    r.copy = malloc(REDO_PART_MAX);
    int result = r.owned == MAP_FAILED || !r.copy ? no_memory(t) : read_parts(&r, base);
    uint64_t certain = base, newest = base;
    if (result == 0)
        result = find_newest(&r, base, &certain, &newest);
    if (result == 0)
        result = recovery_check_fenced(t, newest, end_of_log(&r));
    if (result == 0 && newest > base)
        result = take_sums(&r, newest);
    if (result == 0 && r.parts.count > 0)
        result = make_durable(&r, certain, newest);
    *found = (struct recovered){.restored = newest, .newest = newest};
    if (result == 0 && r.parts.count > 0) {
        t->recovery.recovered = true;
        /* The table first: replay must not write to segments that are log now. */
        result = for_each_record(&r, base, newest, replay_table);
        if (result == 0)
            result = for_each_record(&r, base, newest, replay_rest);
        /* A torn record of a later epoch may be in the log too. */
        found->newest = max_u64(newest, part_at(&r, r.parts.count - 1)->epoch);
    }
    found->newest += ROUND_MAX; /* R13: recovery does not see the parts behind a lost part */
    if (r.owned != MAP_FAILED)
        munmap(r.owned, bytes);
    free(r.copy);
    vector_free(&r.parts);
    return result;
}
