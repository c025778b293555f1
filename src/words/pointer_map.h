/*
 * The pointer map: layout and arithmetic, no policy. It has one bit for each 8-byte word of the container's
 * data. The bit says that the word holds a pointer. When the container gets other addresses, libpm adjusts
 * mapped words only. So it never touches an integer that looks like a pointer.
 *
 * On the medium the map lies in segments of its own. A map segment is made when the first pointer in its
 * group is recorded (txn/maps.c). So a container without pointers has no map segment, and its objects lie
 * where they would lie without a map. The map's words are journaled: the open transaction changes their
 * shadow, the record has the changed words, home has the words of the last commit. Words are sealed, so
 * each has 56 bits, and describes 7 cache lines of data. A map segment thus describes 56 segments, its
 * *group*.
 *
 * Invariants
 *  M1  A bit is set only for a word of an object in use: freeing an object clears its bits.
 *  M2  `groups[g].segment` is the segment that the open transaction's table calls the map of group g.
 *      It is 0 if there is none, and then no word of the group is mapped. `words` is its shadow.
 *
 * Who changes the map holds the allocator's lock; reading needs it only where it is said. Offsets are of
 * the file, in bytes; lines and words count from the file's start.
 *
 * The idea comes from the pointer tags of garbage collectors with exact knowledge. It also comes from the
 * dissertation of Marmol (FIU 2017, section 6.4), whose library finds pointers by their types.
 */
#ifndef PM_WORDS_POINTER_MAP_H
#define PM_WORDS_POINTER_MAP_H

#include "words/journal.h"

/* The journal treats each page of a map as a region. */
#define MAP_PAGE_WORDS (PM_PAGE / sizeof(uint64_t))

/* The part of the map that covers a group of segments. */
struct map_group {
    const uint64_t
        *words; /* sealed words for MAP_WORD_LINES lines each; NULL if nothing is mapped */
    struct journal_region *pages; /* regions of `words`, MAP_PAGE_WORDS words each */
    uint32_t segment;             /* segment of `words`; 0 if nothing is mapped */
    uint64_t made;                /* `made` of the pointer map when these words were made */
    struct journal_region zeroed; /* all words, if they are new */
};

struct pointer_map {
    struct container *c;
    struct map_group *groups;
    uint32_t group_count;
    uint32_t word_shift; /* log2 of the words in a group's map, which fills a segment */
    uint64_t made;       /* count of maps made, by the open transaction and earlier */
};

/* Make the tables, with no group mapped. -1 with a message if memory runs out. */
int pointer_map_load(struct pointer_map *map, struct container *c);
void pointer_map_unload(struct pointer_map *map);

/* ---- places ---------------------------------------------------------------------------------- */

/* `line` / MAP_WORD_LINES, exactly. It multiplies, because a division takes three times as many
 * instructions. */
static inline uint64_t map_word_of_line(uint64_t line)
{
    const unsigned __int128 one = (unsigned __int128)1 << 64, inverse = (one + 5) / MAP_WORD_LINES;
    static_assert(
        MAP_WORD_LINES == 7 && ARENA_SIZE / PM_LINE < UINT64_MAX / 5,
        "5 / 2^64 of a line, over 7, are less than the 1 / 7 that is left to the next word");
    return (uint64_t)(line * inverse >> 64);
}

/* The place in the map of a line's bits, or of a word's bit. */
struct mapped_place {
    struct map_group *group;
    uint64_t word, shift;
};

static inline struct mapped_place mapped_place_in(const struct pointer_map *map, uint64_t map_word,
                                                  uint64_t shift)
{
    return (struct mapped_place){&map->groups[map_word >> map->word_shift],
                                 map_word & ((UINT64_C(1) << map->word_shift) - 1), shift};
}

static inline struct mapped_place mapped_place(const struct pointer_map *map, uint64_t line)
{
    uint64_t map_word = map_word_of_line(line);
    return mapped_place_in(map, map_word, (line - map_word * MAP_WORD_LINES) * PM_LINE_WORDS);
}

static inline struct mapped_place mapped_place_of_word(const struct pointer_map *map, uint64_t word)
{
    uint64_t map_word = map_word_of_line(word / PM_LINE_WORDS);
    return mapped_place_in(map, map_word, word - map_word * SEAL_BITS);
}

/* The same for the word at an offset in bytes. */
static inline struct mapped_place mapped_place_at(const struct pointer_map *map, uint64_t offset)
{
    return mapped_place_of_word(map, offset / sizeof(void *));
}

/* Number of a group, and bytes of the file that a group describes. */
static inline uint32_t map_group_number(const struct pointer_map *map,
                                        const struct map_group *group)
{
    return (uint32_t)(group - map->groups);
}

static inline uint64_t map_group_bytes(const struct pointer_map *map)
{
    return MAP_GROUP_SEGMENTS * map->c->segment_size;
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* The bits from there on. It needs no lock if nobody frees the object. */
static inline uint64_t mapped_at(struct mapped_place at)
{
    const uint64_t *words = __atomic_load_n(&at.group->words, __ATOMIC_ACQUIRE);
    return words ? __atomic_load_n(&words[at.word], __ATOMIC_RELAXED) >> at.shift : 0;
}

/* All bits of the map's word there. */
static inline uint64_t mapped_payload(struct mapped_place at)
{
    at.shift = 0;
    return seal_payload(mapped_at(at));
}

/* Mask of the words of a line that are mapped: one bit a word, the first word in bit 0. Locking as for
 * mapped_at(). */
static inline uint8_t mapped_in_line(const struct pointer_map *map, uint64_t line)
{
    return (uint8_t)mapped_at(mapped_place(map, line));
}

/* The first mapped word in [offset, end), or `end`. Linear in the map words between. Lock. */
uint64_t pointer_map_next(const struct pointer_map *map, uint64_t offset, uint64_t end);

/* Change a word of a group that has a map. */
static inline void pointer_map_set_word(struct journal *journal, struct map_group *group,
                                        uint64_t word, uint64_t payload)
{
    journal_set(journal, &group->pages[word / MAP_PAGE_WORDS], word % MAP_PAGE_WORDS,
                seal(payload));
}

/* Unmap every word that [offset, offset + bytes) touches. */
void pointer_map_clear(struct pointer_map *map, struct journal *journal, uint64_t offset,
                       uint64_t bytes);

#endif
