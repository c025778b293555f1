/*
 * The pointer map has one bit for each 8-byte word of the container's data. The bit says that the word
 * holds a pointer. When the container moves to another address, libpm shifts mapped words only. So it
 * never touches an integer that looks like a pointer.
 *
 * On the medium the map lies in segments of its own. A map segment is made when the first pointer in its
 * group is recorded. So a container without pointers has no map segment, and its objects lie where they
 * would lie without a map. The map's words are journaled: the open transaction changes their shadow, the
 * record has the changed words, home has the words of the last commit. Words are sealed, so each has 56
 * bits, and describes 7 cache lines of data. A map segment thus describes 56 segments, its *group*.
 *
 * Invariants
 *  M1  A bit is set only for a word of an object in use: freeing an object clears its bits.
 *  M2  `groups[g].segment` is the segment that the open transaction's table calls the map of group g.
 *      It is 0 if there is none, and then no word of the group is mapped. `words` is its shadow.
 *
 * The caller holds the allocator's lock. Offsets are of the file, in bytes.
 *
 * The idea comes from the pointer tags of garbage collectors with exact knowledge. It also comes from the
 * dissertation of Marmol (FIU 2017, section 6.4), whose library finds pointers by their types.
 */
#ifndef PM_POINTER_MAP_H
#define PM_POINTER_MAP_H

#include "allocator/allocator.h"

struct pointer_map {
    struct allocator *a;
    uint32_t group_count;
    struct map_group *groups;
    struct journal_region *zeroed; /* per group: the whole map, if it is new */
    uint64_t *made;                /* per group: `maps_made` of the allocator when its map was made */
    /* Whether a word leads out of the container only until the next commit. The commit will make the word
     * lead into the container, or be NULL there. NULL: no word does. */
    bool (*leads_out_until_commit)(const uint64_t *word);
};

/* Find the container's maps. From then on freed objects lose their bits, and allocator_check() checks the
 * map too, but not the targets of pointers. -1 with a message. */
int pointer_map_open(struct pointer_map *map, struct allocator *a);
void pointer_map_close(struct pointer_map *map);

/* Map `count` words. 0, or -1 with a message when there is no room for a map. 5 ns a word. */
int pointer_map_set(struct pointer_map *map, uint64_t offset, uint64_t count);

/* Make all maps that the data in the file now may need. 0, or -1 as pointer_map_set(): some maps may have
 * been made. */
int pointer_map_make_all(struct pointer_map *map);

/* Make the maps for a range: then pointer_map_set() cannot fail there. 0, or -1 in the same way. */
int pointer_map_make(struct pointer_map *map, uint64_t offset, uint64_t bytes);

/* Unmap every word that [offset, offset + bytes) touches. */
void pointer_map_clear(struct pointer_map *map, uint64_t offset, uint64_t bytes);

/* Map each word of `to` whose counterpart in `from` is mapped. No word of `to` is mapped before. -1 as
 * pointer_map_set(): some words are not mapped then. */
int pointer_map_copy(struct pointer_map *map, uint64_t to, uint64_t from, uint64_t bytes);

/* Check that each mapped pointer leads to a place that pm_check() allows. -1 with a message. Locks. Linear
 * in the objects and the pointers. */
int pointer_map_check_pointers(const struct pointer_map *map);

/* Give back maps without a bit, and move maps in segments from `end` on to free segments before it.
 * Nothing has changed since the last commit. -1 as pointer_map_set(). */
int pointer_map_lower(struct pointer_map *map, uint32_t end);

/* The first mapped word in [offset, end), or `end`. Linear in the map words between. */
uint64_t pointer_map_next(const struct pointer_map *map, uint64_t offset, uint64_t end);

/* The same, for words of objects in use only, because a damaged or forged map may break M1. For callers
 * that do not know whether [offset, end) belongs to an object. */
uint64_t pointer_map_next_in_objects(const struct pointer_map *map, uint64_t offset, uint64_t end);

#endif
