/*
 * A hash table from an object to the words that lead to it, with chains through one array of entries. Freed
 * entries are reused. When the array is full, rebuild() drops the entries that are no longer true, and makes
 * room for twice the others. So remembering a word takes constant time on average.
 *
 * The words of a card are chosen by their kinds, a line at a time. Only words that may be pointers are read.
 */
#include "discovery/references.h"

#include "backend/backend.h"
#include "discovery/cards.h"

#include <stdlib.h>
#include <string.h>

/* A remembered word. `next` chains entries of one bucket. */
struct entry {
    uint64_t object, word; /* addresses */
    uint32_t next;         /* index of the next entry, 0: none */
};

/* Entries [1, entry_count) are in use or on the free list. Buckets are a power of two. */
static struct entry *entries;
static uint32_t *buckets;
static uint64_t room, entry_count = 1, used;
static uint32_t free_list;

static uint64_t bucket_of(uint64_t object)
{
    return (object / HEAP_GRANULE * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (room - 1);
}

static void chain(uint32_t i)
{
    uint32_t *bucket = &buckets[bucket_of(entries[i].object)];
    entries[i].next = *bucket;
    *bucket = i;
}

static uint8_t *kind_of(const struct entry *e)
{
    return kinds_of((void *)e->word);
}

/* True if the word still leads to the object for which it is remembered. */
static bool is_true(const struct entry *e)
{
    struct heap_object object;
    const void *value = *(void **)e->word;
    return (*kind_of(e) & KIND_REMEMBERED) && heap_contains(value) &&
           heap_find(value, &object) == HEAP_LIVE && (uint64_t)object.start == e->object;
}

/* Keep each entry that is still true, but only once. Returns the end of the kept entries. */
static uint64_t keep_true(void)
{
    uint64_t left = 1;
    for (uint64_t i = 1; i < entry_count; i++)
        if (entries[i].object && is_true(&entries[i])) {
            *kind_of(&entries[i]) &= (uint8_t)~KIND_REMEMBERED; /* a second entry is no longer true */
            entries[left++] = entries[i];
        }
    for (uint64_t i = 1; i < left; i++)
        *kind_of(&entries[i]) |= KIND_REMEMBERED;
    return left;
}

/* Drop entries that are no longer true, and give the table room for twice the others. If there is no
 * memory, it keeps its size. True if there is room for an entry. */
static bool rebuild(void)
{
    uint64_t left = keep_true();
    uint64_t wanted = 1024;
    while (wanted < 2 * left)
        wanted *= 2;
    /* Buckets first: without memory for both, the table keeps its contents and size. */
    uint32_t *fresh = wanted > UINT32_MAX ? NULL : calloc(wanted, sizeof *fresh);
    void *table = fresh ? realloc(entries, wanted * sizeof *entries) : NULL;
    if (table) {
        entries = table;
        free(buckets);
        buckets = fresh;
        room = wanted;
    } else {
        free(fresh);
        if (room > 0)
            memset(buckets, 0, room * sizeof *buckets);
    }
    entry_count = left;
    used = left - 1;
    free_list = 0;
    for (uint32_t i = 1; i < entry_count; i++)
        chain(i);
    return left < room;
}

static bool remember(uint64_t object, uint64_t word)
{
    if (!free_list && entry_count >= room && !rebuild())
        return false;
    uint32_t i = free_list;
    if (i)
        free_list = entries[i].next;
    else
        i = (uint32_t)entry_count++;
    used++;
    entries[i] = (struct entry){.object = object, .word = word};
    chain(i);
    return true;
}

/* Look at a word of a written card. */
static bool look(uint64_t *word, references_found *found, void *context)
{
    struct heap_object object;
    uint8_t *kind = kinds_of(word);
    if (*kind & KIND_REMEMBERED || !heap_contains((void *)*word) ||
        heap_find((void *)*word, &object) != HEAP_LIVE)
        return true;
    if (object.moves)
        return found(context, word, &object);
    if (!remember((uint64_t)object.start, (uint64_t)word))
        return false;
    *kind |= KIND_REMEMBERED;
    return true;
}

static bool look_at_card(char *card, references_found *found, void *context)
{
    const uint8_t *kinds = kinds_of(card);
    for (uint32_t line = 0; line < CARD / PM_LINE; line++) {
        uint64_t all;
        memcpy(&all, kinds + line * PM_LINE_WORDS, sizeof all);
        all = (all & KIND_MAY_POINT * KIND_EACH) | kinds_pieced(all);
        for (uint64_t *word = (uint64_t *)(card + line * PM_LINE); all; all >>= 8, word++)
            if (all & UINT8_MAX && !look(word, found, context))
                return false;
    }
    return true;
}

bool references_refresh(references_found *found, void *context)
{
    for (char *card; (card = cards_take()) != NULL;)
        if (!look_at_card(card, found, context)) {
            cards_mark(card, CARD);
            return false;
        }
    return true;
}

void references_of(const struct heap_object *object, references_found *found, void *context)
{
    if (used == 0)
        return;
    for (uint32_t i = buckets[bucket_of((uint64_t)object->start)]; i; i = entries[i].next)
        if (entries[i].object == (uint64_t)object->start && is_true(&entries[i]) &&
            !found(context, (uint64_t *)entries[i].word, object))
            return;
}

void references_forget(const struct heap_object *object)
{
    if (used == 0)
        return;
    uint32_t *link = &buckets[bucket_of((uint64_t)object->start)];
    while (*link) {
        uint32_t i = *link;
        if (entries[i].object != (uint64_t)object->start) {
            link = &entries[i].next;
            continue;
        }
        *link = entries[i].next;
        entries[i] = (struct entry){.next = free_list};
        free_list = i;
        used--;
    }
}

void references_renew(const void *from, uint64_t bytes)
{
    uint8_t *kind = kinds_of(from);
    cards_mark(from, bytes);
    for (uint64_t i = 0; i < divide_up(bytes, sizeof(uint64_t)); i++)
        kind[i] &= (uint8_t)~KIND_REMEMBERED;
}
