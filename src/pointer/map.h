/*
 * The pointer map: one bit for each 8-byte word of the container's data, which says that the word
 * holds a pointer. Only what the map names is shifted when the container moves to another address,
 * so an integer that looks like a pointer is never touched.
 *
 * On the medium the map lies in segments of its own, made when the first pointer in what they
 * speak for is recorded; so a container without pointers has none, and objects lie where they
 * would without it. Its words are journaled: the open transaction changes their shadow, the record
 * has the changed ones, home has those of the last commit. Words are sealed, so each has 56 bits,
 * and stands for 7 cache lines of data. A map segment thus speaks for 56 segments, its *group*.
 *
 * Invariants
 *  M1  A bit is set only for a word of an object in use: freeing an object clears its bits.
 *  M2  `groups[g].segment` is the segment that the open transaction's table calls the map of group g,
 *      or 0 if there is none, and then no word of the group is mapped; `words` is its shadow.
 *
 * The caller holds the allocator's lock. Offsets are of the file, in bytes.
 *
 * The idea: tags for pointers, as garbage collectors with exact knowledge keep; and the
 * dissertation of Marmol (FIU 2017, section 6.4), whose library finds pointers by their types.
 */
#ifndef PM_POINTER_MAP_H
#define PM_POINTER_MAP_H

#include "allocator/allocator.h"

struct pointer_map {
    struct allocator *a;
    uint32_t group_count;
    struct map_group *groups;
    struct journal_region *zeroed; /* per group: the whole of a map that is new */
    uint64_t *made;                /* per group: `maps_made` of the allocator when its map was made */
    /* Whether a word leads out of the container only until the next commit, which has it lead into it,
     * or be NULL there. NULL: none does. */
    bool (*leads_out_until_commit)(const uint64_t *word);
};

/* Find the maps that the container has; from then on freed objects lose their bits, and
 * allocator_check() checks the map too, but not where the pointers lead. -1 with a message. */
int pointer_map_open(struct pointer_map *map, struct allocator *a);
void pointer_map_close(struct pointer_map *map);

/* Map `count` words. 0, or -1 with a message when there is no room for a map. 5 ns a word. */
int pointer_map_set(struct pointer_map *map, uint64_t offset, uint64_t count);

/* Make the maps that whatever is in the file now may need. 0, or -1 as pointer_map_set(): some may have
 * been made. */
int pointer_map_make_all(struct pointer_map *map);

/* Make those for a range: then pointer_map_set() there cannot fail. 0, or -1 in the same way. */
int pointer_map_make(struct pointer_map *map, uint64_t offset, uint64_t bytes);

/* Unmap every word that [offset, offset + bytes) touches. */
void pointer_map_clear(struct pointer_map *map, uint64_t offset, uint64_t bytes);

/* Map those words of `to`, none of which is mapped, whose counterparts in `from` are. -1 as
 * pointer_map_set(), and then some are not. */
int pointer_map_copy(struct pointer_map *map, uint64_t to, uint64_t from, uint64_t bytes);

/* That each mapped pointer leads where pm_check() lets it. -1 with a message. Locks. Linear in the objects and
 * the pointers. */
int pointer_map_check_pointers(const struct pointer_map *map);

/* Give back maps without a bit, and move those in segments from `end` on to free ones before it.
 * Nothing has changed since the last commit. -1 as pointer_map_set(). */
int pointer_map_lower(struct pointer_map *map, uint32_t end);

/* The first mapped word in [offset, end), or `end`. Linear in the map words between. */
uint64_t pointer_map_next(const struct pointer_map *map, uint64_t offset, uint64_t end);

/* The same, of words of objects in use only: a map that is damaged or forged may break M1. For all who
 * do not know that [offset, end) is of an object. */
uint64_t pointer_map_next_in_objects(const struct pointer_map *map, uint64_t offset, uint64_t end);

#endif
