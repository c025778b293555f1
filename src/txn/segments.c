/*
 * Who owns which segment. Data segments change owners with the transaction, through journaled words. The
 * log cannot wait for a commit. Its word is stored home at once. The round of the first image or record
 * in the segment fences the word, and the segment counts only then. So the log, like everybody else,
 * takes a segment only if it is free in home *and* in shadow.
 */
#include "txn/txn.h"

#include <errno.h>

/* The call that makes the file grow waits for it: in memory 0.4 ms a MiB. Longer steps save no time. */
#define GROWTH_BYTES_MAX (UINT64_C(2) << 20)

static bool is_free(const struct txn *t, uint32_t segment)
{
    return home_table(t->c)[segment] == 0 && shadow_table(t->c)[segment] == 0;
}

static uint32_t first_page(const struct txn *t, uint32_t segment)
{
    return segment * pages_per_segment(t->c);
}

/* First fit among the segments of the file; UINT32_MAX if there is no run of `count`. */
static uint32_t find_run(struct txn *t, uint32_t count)
{
    uint32_t end = atomic_load(&t->c->segments), run = 0;
    while (t->free_hint < end && !is_free(t, t->free_hint))
        t->free_hint++;
    for (uint32_t i = t->free_hint; i < end; i++) {
        run = is_free(t, i) ? run + 1 : 0;
        if (run == count)
            return i + 1 - count;
    }
    return UINT32_MAX;
}

/* Grow the file by `missing` segments, or by more at once, because more will be needed. */
static int grow(struct txn *t, uint32_t missing)
{
    uint64_t step =
        min_u64(atomic_load(&t->c->segments) / 8, GROWTH_BYTES_MAX >> t->c->segment_shift);
    return container_grow(t->c, missing, (uint32_t)max_u64(missing, step));
}

/* As find_run(), but grow the file if there is no run. The page lock is held. [handler] */
static int64_t find_or_grow(struct txn *t, uint32_t count)
{
    uint32_t first = find_run(t, count);
    if (first != UINT32_MAX)
        return first;
    /* The file's last segments may be free. Then the file grows only by the rest of the run. */
    uint32_t end = atomic_load(&t->c->segments), tail = 0;
    while (tail < count && end - tail > t->free_hint && is_free(t, end - tail - 1))
        tail++;
    int grown = grow(t, count - tail);
    return grown < 0 ? grown : (int64_t)(end - tail);
}

int64_t segments_take(struct txn *t, uint32_t count, uint64_t word, uint64_t header_bytes)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    uint32_t segments = atomic_load(&t->c->segments);
    int64_t first = find_or_grow(t, count);
    if (first >= 0) {
        for (uint32_t i = 0; i < count; i++)
            journal_set(&t->journal, &t->table, (uint32_t)first + i,
                        i == 0 ? word : segment_word(SEGMENT_MORE, i));
        uint32_t page = first_page(t, (uint32_t)first);
        uint32_t pages = count * pages_per_segment(t->c);
        /* Pages of an earlier owner may still be open. */
        int error = pages_close(&t->pages, page, pages);
        if (error == 0) {
            pages_reset(&t->pages, page, pages, t->engine->in_place);
            error = t->engine->adopt(t, page, pages, (uint32_t)(header_bytes >> PM_PAGE_SHIFT));
        }
        if (error != 0) {
            for (uint32_t i = 0; i < count; i++)
                journal_set(&t->journal, &t->table, (uint32_t)first + i, 0);
            txn_cut_tail(t, segments);
            first = error;
        }
    }
    lock_release_masked(&t->lock, &saved);
    return first;
}

uint32_t segments_find(struct txn *t, uint32_t count)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    uint32_t first = find_run(t, count);
    lock_release_masked(&t->lock, &saved);
    return first;
}

int64_t segments_take_alike(struct txn *t, uint32_t from, uint32_t count, uint64_t header_bytes)
{
    int64_t first = segments_take(t, count, segment_word(SEGMENT_LARGE, count), header_bytes);
    if (first < 0)
        return first;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    for (uint32_t i = 0; i < count; i++) /* these words do not depend on the segment's place */
        journal_set(&t->journal, &t->table, (uint32_t)first + i, shadow_table(t->c)[from + i]);
    lock_release_masked(&t->lock, &saved);
    return first;
}

void segments_release(struct txn *t, uint32_t first, uint32_t count)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    for (uint32_t i = first; i < first + count; i++)
        journal_set(&t->journal, &t->table, i, 0);
    if (first < t->free_hint) /* segments taken in this transaction are free again at once */
        t->free_hint = first;
    t->freed = t->epoch;
    lock_release_masked(&t->lock, &saved);
}

/* Store a word to both tables. Each store is atomic, for readers without the lock. */
static void set_words(struct txn *t, uint32_t segment, uint64_t word)
{
    __atomic_store_n(&shadow_table(t->c)[segment], word, __ATOMIC_RELAXED);
    __atomic_store_n(&home_table(t->c)[segment], word, __ATOMIC_RELAXED);
}

int segments_claim_log(struct txn *t, unsigned h)
{
    struct log_half *half = &t->log.half[h];
    int64_t segment = find_or_grow(t, 1);
    if (segment < 0)
        return (int)segment;
    uint32_t page = first_page(t, (uint32_t)segment), pages = pages_per_segment(t->c);
    int error = pages_close(&t->pages, page, pages);
    if (error != 0)
        return error;
    pages_reset(&t->pages, page, pages, t->engine->in_place);
    uint64_t word = segment_log_word(h, half->order);
    set_words(t, (uint32_t)segment, word);
    error = medium_publish(&t->c->medium, &home_table(t->c)[segment], sizeof word);
    if (error != 0) { /* recovery would not find anything written there */
        set_words(t, (uint32_t)segment, 0);
        return error;
    }
    half->order++;
    half->segments[half->count++] = (uint32_t)segment;
    return 0;
}

/* Take the last segment from a half. -errno: the segment stays. */
static int release_log(struct txn *t, struct log_half *half)
{
    uint32_t segment = half->segments[half->count - 1];
    uint64_t word = home_table(t->c)[segment];
    set_words(t, segment, 0);
    int error = medium_publish(&t->c->medium, &home_table(t->c)[segment], sizeof word);
    if (error != 0) { /* the file would still call it log, and it may be cut off */
        set_words(t, segment, word);
        return error;
    }
    half->count--;
    if (segment < t->free_hint)
        t->free_hint = segment;
    return 0;
}

int segments_make_room(struct txn *t, uint64_t count)
{
    uint32_t end = atomic_load(&t->c->segments), free = 0;
    for (uint32_t i = t->free_hint; i < end && free < count; i++)
        free += is_free(t, i);
    if (free == count)
        return 0;
    if (count - free > t->c->segments_max)
        return container_exceeds_max(t->c);
    int grown = grow(t, (uint32_t)(count - free));
    return grown < 0 ? grown : 0;
}

void segments_unclaim_log(struct txn *t, unsigned h, uint32_t count)
{
    struct log_half *half = &t->log.half[h];
    bool any = half->count > count;
    while (half->count > count && release_log(t, half) == 0)
        ;
    if (any) /* the next round reports an error */
        (void)medium_fence(&t->c->medium);
}

int segments_cut_log(struct txn *t)
{
    int error = 0;
    for (unsigned h = 0; h < 2; h++)
        while (t->log.half[h].count > 1 && error == 0)
            error = release_log(t, &t->log.half[h]);
    /* Fence before anybody stores to these segments: recovery reads the contents of a log segment as log. */
    int fenced = medium_fence(&t->c->medium);
    return error != 0 ? error : fenced;
}

int segments_grow_log(struct txn *t, unsigned h, uint64_t slots)
{
    static_assert(FORMAT_SIZE_MAX >> PM_PAGE_SHIFT < UINT32_MAX, "a slot's number fits");
    uint32_t before = t->log.half[h].count, segments = atomic_load(&t->c->segments);
    uint64_t wanted = divide_up(slots, t->log.segment_slots);
    if (wanted <= before)
        return 0;
    int error = segments_make_room(t, wanted - before);
    while (error == 0 && t->log.half[h].count < wanted)
        error = segments_claim_log(t, h);
    if (error != 0) {
        segments_unclaim_log(t, h, before);
        txn_cut_tail(t, segments);
    }
    return error;
}

void segments_shrink_log(struct txn *t, unsigned h, uint64_t slots)
{
    struct log_half *half = &t->log.half[h];
    uint64_t per_segment = t->log.segment_slots;
    uint32_t used = (uint32_t)divide_up(half->next, per_segment);
    half->peak = used >= half->peak ? used : half->peak - (uint32_t)divide_up(half->peak - used, 4);
    uint64_t keep = max_u64(max_u64(1, 2 * half->peak), divide_up(slots, per_segment));
    while (half->count > keep)
        journal_set(&t->journal, &t->table, half->segments[--half->count], 0);
    half->mapped = (uint32_t)min_u64(half->mapped, log_capacity(&t->log, h));
}

void segments_close_freed(struct txn *t, const struct record_word *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (words[i].value != 0 || !is_table_word(t->c, words[i].offset))
            continue;
        uint32_t segment = (uint32_t)((words[i].offset - FORMAT_TABLE) / sizeof(uint64_t));
        if (segment < t->free_hint)
            t->free_hint = segment;
        (void)pages_close(&t->pages, first_page(t, segment), pages_per_segment(t->c));
    }
}

/* Pages at the start of a slab that its bitmap takes. `word` is the slab's table word. */
static uint32_t header_pages(const struct txn *t, uint64_t word)
{
    uint32_t size = segment_argument(word) * FORMAT_GRANULARITY_MIN;
    return slab_shape(t->c->segment_size, size).header_bytes >> PM_PAGE_SHIFT;
}

bool segments_page_is_data(const struct txn *t, uint32_t page)
{
    uint32_t segment = page / pages_per_segment(t->c);
    if (segment >= atomic_load(&t->c->segments))
        return false;
    uint64_t word = table_word(shadow_table(t->c), segment);
    switch (segment_kind(word)) {
    case SEGMENT_SLAB:
        return page % pages_per_segment(t->c) >= header_pages(t, word);
    case SEGMENT_LARGE:
    case SEGMENT_MORE:
        return true;
    default:
        return false;
    }
}
