#ifdef MARKED
#define scatter     marked_scatter
#define fill        marked_fill
#define word_count  marked_word_count
#define store_lines marked_store_lines
#endif
#include "marks/loops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scatter(uint32_t *to, const uint32_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[places[i]] = (uint32_t)i;
}

void fill(uint32_t *to, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (uint32_t)i * seed;
}

void store_lines(uint64_t *to, size_t lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[(i & (lines - 1)) * 8] = i;
}

struct word {
    struct word *next;
    uint64_t count;
    char text[];
};

#define BUCKETS 4096

static struct word *find(struct word **table, const char *text, size_t length)
{
    uint64_t hash = 14695981039346656037U;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211U;
    struct word **bucket = &table[hash % BUCKETS];
    for (struct word *word = *bucket; word; word = word->next)
        if (strncmp(word->text, text, length) == 0 && word->text[length] == '\0')
            return word;
    struct word *word = malloc(sizeof *word + length + 1);
    word->next = *bucket;
    word->count = 0;
    memcpy(word->text, text, length);
    word->text[length] = '\0';
    return *bucket = word;
}

static int by_count(const void *a, const void *b)
{
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->text, y->text);
}

uint64_t word_count(const char *text, size_t length)
{
    struct word **table = calloc(BUCKETS, sizeof *table);
    size_t words = 0;
    for (const char *at = text, *end = text + length; at < end;) {
        size_t size = strcspn(at, " \n");
        struct word *word = find(table, at, size);
        words += word->count++ == 0;
        at += size + 1;
    }
    struct word **order = malloc(words * sizeof(*order));
    size_t next = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct word *word = table[i]; word; word = word->next)
            order[next++] = word;
    qsort(order, words, sizeof(*order), by_count);

    char *report = malloc(words * 64), *to = report;
    for (size_t i = 0; i < words; i++)
        to += snprintf(to, 64, "%.40s %llu\n", order[i]->text, (unsigned long long)order[i]->count);
    uint64_t sum = (uint64_t)(to - report);
    for (size_t i = 0; i < words; i++)
        free(order[i]);
    free(order);
    free(report);
    free(table);
    return sum;
}
