/*
 * journal_set() stores a word in the shadow, and notes that the word may differ from home. journal_collect()
 * compares the noted words only. If a region has up to four of them, it compares these. Otherwise it
 * compares the range, eight words at a time by SSE2. A rollback copies the range back from home.
 */
#define _GNU_SOURCE
#include "words/journal.h"

#include <emmintrin.h>
#include <string.h>
#include <sys/mman.h>

static void enlist(struct journal *journal, struct journal_region *region)
{
    if (region->low == region->high && !region->clear) {
        region->next = journal->dirty;
        journal->dirty = region;
    }
}

static void add_candidate(struct journal_region *region, uint32_t index)
{
    uint32_t *few = region->few, n = region->few_count;
    for (uint32_t i = 0; i < n; i++)
        if (few[i] == index)
            return;
    region->many = n == JOURNAL_FEW;
    if (region->many)
        return;
    for (; n > 0 && few[n - 1] > index; n--)
        few[n] = few[n - 1];
    few[n] = index;
    region->few_count++;
}

void journal_set(struct journal *journal, struct journal_region *region, uint32_t index,
                 uint64_t value)
{
    enlist(journal, region);
    if (region->low == region->high) {
        region->low = index;
        region->high = index + 1;
    } else if (index < region->low) {
        region->low = index;
    } else if (index >= region->high) {
        region->high = index + 1;
    }
    if (!region->many)
        add_candidate(region, index);
    shadow_word(journal->c, region->offset)[index] = value;
    __builtin_prefetch(home_word(journal->c, region->offset) + index, 1); /* commit will read it */
}

void journal_clear(struct journal *journal, struct journal_region *region)
{
    enlist(journal, region);
    region->clear = true;
    size_t bytes = region->words * sizeof(uint64_t);
    memset(home_word(journal->c, region->offset), 0, bytes);
    if (journal->c->medium.queue)
        queue_touch(&journal->c->medium, home_word(journal->c, region->offset), bytes);
    memset(shadow_word(journal->c, region->offset), 0, bytes);
}

#define BLOCK_WORDS 8 /* words compared at once */

/* Compare a block's words: bit 2 n is set if word n differs. */
static inline uint32_t differing(const uint64_t *a, const uint64_t *b)
{
    const __m128i *x = (const __m128i *)a, *y = (const __m128i *)b;
    __m128i same[4]; /* each has the halves of two words */
    for (int i = 0; i < 4; i++)
        same[i] = _mm_cmpeq_epi32(_mm_loadu_si128(&x[i]), _mm_loadu_si128(&y[i]));
    __m128i all =
        _mm_packs_epi16(_mm_packs_epi32(same[0], same[1]), _mm_packs_epi32(same[2], same[3]));
    uint32_t halves = ~(uint32_t)_mm_movemask_epi8(all);
    return (halves | halves >> 1) & 0x5555;
}

/* The words of a region, and the array to which changed words are written out. NULL: count only. */
struct walked {
    const uint64_t *shadow, *home;
    uint64_t offset;
    struct record_word *words;
};

/* The following functions take the count of words found before, and return the count with their own. */
static inline uint64_t found_word(const struct walked *w, uint64_t i, uint64_t found)
{
    if (w->words)
        w->words[found] = (struct record_word){w->offset + i * sizeof(uint64_t), w->shadow[i]};
    return found + 1;
}

static inline uint64_t look_at_word(const struct walked *w, uint64_t i, uint64_t found)
{
    return w->shadow[i] == w->home[i] ? found : found_word(w, i, found);
}

static inline uint64_t look_at_few(const struct walked *w, const struct journal_region *r,
                                   uint64_t found)
{
    for (uint32_t n = 0; n < r->few_count; n++)
        found = look_at_word(w, r->few[n], found);
    return found;
}

/* Compare by the block, because most words of a range have not changed. */
static inline uint64_t look_at_range(const struct walked *w, uint64_t i, uint64_t end,
                                     uint64_t found)
{
    for (; end - i >= BLOCK_WORDS; i += BLOCK_WORDS)
        for (uint32_t d = differing(&w->shadow[i], &w->home[i]); d; d &= d - 1)
            found = found_word(w, i + (uint32_t)__builtin_ctz(d) / 2, found);
    for (; i < end; i++)
        found = look_at_word(w, i, found);
    return found;
}

/* Count the changes, and write them to the arrays that are not NULL. */
static inline struct journal_counts walk(const struct journal *journal, struct record_clear *clears,
                                         struct record_word *words)
{
    struct journal_counts counts = {0, 0};
    for (const struct journal_region *r = journal->dirty; r; r = r->next) {
        struct walked w = {shadow_word(journal->c, r->offset), home_word(journal->c, r->offset),
                           r->offset, words};
        if (r->obsolete)
            continue;
        if (r->clear && clears)
            clears[counts.clears] = (struct record_clear){r->offset, r->words * sizeof(uint64_t)};
        counts.clears += r->clear;
        counts.words = r->many ? look_at_range(&w, r->low, r->high, counts.words)
                               : look_at_few(&w, r, counts.words);
    }
    return counts;
}

struct journal_counts journal_count(const struct journal *journal)
{
    return walk(journal, NULL, NULL);
}

struct journal_counts journal_collect(const struct journal *journal, struct record_clear *clears,
                                      struct record_word *words)
{
    return walk(journal, clears, words);
}

void journal_apply(struct container *c, const struct record_clear *clears, uint64_t clear_count,
                   const struct record_word *words, uint64_t word_count)
{
    for (uint64_t i = 0; i < clear_count; i++)
        memset(c->home + clears[i].offset, 0, clears[i].bytes);
    for (uint64_t i = 0; i < word_count; i++) /* the medium writes whole words too */
        __atomic_store_n(home_word(c, words[i].offset), words[i].value, __ATOMIC_RELAXED);
}

void journal_write_back(struct container *c, const struct record_clear *clears,
                        uint64_t clear_count, const struct record_word *words, uint64_t word_count)
{
    for (uint64_t i = 0; i < clear_count; i++)
        medium_write_back(&c->medium, c->home + clears[i].offset, clears[i].bytes);
    for (uint64_t i = 0; i < word_count; i++) {
        /* The words of a region are in order, so a line is written back once. */
        bool last =
            i + 1 == word_count || words[i + 1].offset / PM_LINE != words[i].offset / PM_LINE;
        if (last)
            medium_write_back(&c->medium, home_word(c, words[i].offset), sizeof(uint64_t));
    }
}

void journal_forget_new_obsolete(struct journal *journal)
{
    struct journal_region **link = &journal->dirty;
    while (*link) {
        if ((*link)->obsolete && (*link)->clear)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
}

void journal_trim(struct journal *journal, const struct journal_region *region)
{
    if (journal->c->medium.queue) /* with a queue the file may lag behind home */
        return;
    madvise(shadow_word(journal->c, region->offset),
            align_up(region->words * sizeof(uint64_t), PM_PAGE), MADV_DONTNEED);
}

/* Take every region off the chain. With `restore`, also make its shadow equal to home. */
static void unchain(struct journal *journal, bool restore)
{
    struct journal_region *r = journal->dirty;
    journal->dirty = NULL;
    while (r) {
        struct journal_region *next = r->next;
        if (restore)
            memcpy(shadow_word(journal->c, r->offset) + r->low,
                   home_word(journal->c, r->offset) + r->low,
                   (r->high - r->low) * sizeof(uint64_t));
        r->low = r->high = 0;
        r->few_count = 0;
        r->many = r->clear = r->obsolete = false;
        r->next = NULL;
        r = next;
    }
}

void journal_finish(struct journal *journal)
{
    unchain(journal, false);
}

void journal_rollback(struct journal *journal)
{
    unchain(journal, true);
}
