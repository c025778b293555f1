#define _GNU_SOURCE
#include "txn/journal.h"

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
    __builtin_prefetch(home_word(journal->c, region->offset) + index, 1); /* for the commit */
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

/* Some words, compared as a whole. */
#define BLOCK_WORDS 8
typedef uint64_t block __attribute__((vector_size(BLOCK_WORDS * 8), aligned(8)));

static inline bool blocks_differ(const uint64_t *a, const uint64_t *b)
{
    block d = *(const block *)a ^ *(const block *)b;
    return (d[0] | d[1] | d[2] | d[3] | d[4] | d[5] | d[6] | d[7]) != 0;
}

/* Where a region's words are. */
struct region_words {
    const uint64_t *shadow, *home;
    uint64_t offset;
};

/* Count the words of [first, end) that have changed, and write them out if there is where. */
static inline uint64_t changed_words(const struct region_words *r, uint32_t first, uint32_t end,
                                     struct record_word *words)
{
    uint64_t n = 0;
    for (uint32_t i = first; i < end; i++) {
        if (r->shadow[i] == r->home[i])
            continue;
        if (words)
            words[n] = (struct record_word){r->offset + i * sizeof(uint64_t), r->shadow[i]};
        n++;
    }
    return n;
}

/* The same for a whole range, of which most words have not: by the block. */
static inline uint64_t changed_blocks(const struct region_words *r, uint32_t first, uint32_t end,
                                      struct record_word *words)
{
    uint64_t n = 0;
    for (; end - first >= BLOCK_WORDS; first += BLOCK_WORDS)
        if (blocks_differ(&r->shadow[first], &r->home[first]))
            n += changed_words(r, first, first + BLOCK_WORDS, words ? words + n : NULL);
    return n + changed_words(r, first, end, words ? words + n : NULL);
}

static inline uint64_t changed_few(const struct region_words *r, const uint32_t *few,
                                   uint32_t count, struct record_word *words)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += changed_words(r, few[i], few[i] + 1, words ? words + n : NULL);
    return n;
}

/* Count the changes, and write them out if there is where. */
static inline struct journal_counts walk(const struct journal *journal, struct record_clear *clears,
                                         struct record_word *words)
{
    struct journal_counts counts = {0, 0};
    for (const struct journal_region *r = journal->dirty; r; r = r->next) {
        struct region_words in = {shadow_word(journal->c, r->offset),
                                  home_word(journal->c, r->offset), r->offset};
        struct record_word *next = words ? words + counts.words : NULL;
        if (r->obsolete)
            continue;
        if (r->clear && clears)
            clears[counts.clears] = (struct record_clear){r->offset, r->words * sizeof(uint64_t)};
        counts.clears += r->clear;
        counts.words += r->many ? changed_blocks(&in, r->low, r->high, next)
                                : changed_few(&in, r->few, r->few_count, next);
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
    for (uint64_t i = 0; i < word_count; i++) /* whole words: the medium too */
        __atomic_store_n(home_word(c, words[i].offset), words[i].value, __ATOMIC_RELAXED);
}

void journal_write_back(struct container *c, const struct record_clear *clears,
                        uint64_t clear_count, const struct record_word *words, uint64_t word_count)
{
    for (uint64_t i = 0; i < clear_count; i++)
        medium_write_back(&c->medium, c->home + clears[i].offset, clears[i].bytes);
    for (uint64_t i = 0; i < word_count; i++) {
        /* Words of a region are in order: a line is written back once. */
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
    if (journal->c->medium.queue) /* then the file may lag behind home */
        return;
    madvise(shadow_word(journal->c, region->offset),
            align_up(region->words * sizeof(uint64_t), PM_PAGE), MADV_DONTNEED);
}

/* Take every region off the chain; with `restore`, its shadow becomes home's again. */
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
