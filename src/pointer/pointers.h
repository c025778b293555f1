/*
 * Which words of objects are pointers, as programs and libpm declare them: the policy of the pointer map
 * (words/pointer_map.h). The caller holds the allocator's lock. Offsets are of the file, in bytes.
 */
#ifndef PM_POINTER_POINTERS_H
#define PM_POINTER_POINTERS_H

#include "allocator/allocator.h"

/* Map `count` words. 0, or -1 with a message when there is no room for a map. 5 ns a word. */
int pointers_set(struct allocator *a, uint64_t offset, uint64_t count);

/* Make all maps that the data in the file now may need. 0, or -1 as pointers_set(): some maps may have
 * been made. */
int pointers_make_all_maps(struct allocator *a);

/* Make the maps for a range: then pointers_set() cannot fail there. 0, or -1 in the same way. */
int pointers_make_maps(struct allocator *a, uint64_t offset, uint64_t bytes);

/* Map each word of `to` whose counterpart in `from` is mapped. No word of `to` is mapped before. -1 as
 * pointers_set(): some words are not mapped then. */
int pointers_copy(struct allocator *a, uint64_t to, uint64_t from, uint64_t bytes);

/* Give back maps without a bit, and move maps in segments from `end` on to free segments before it.
 * Nothing has changed since the last commit. -1 as pointers_set(). */
int pointers_lower_maps(struct allocator *a, uint32_t end);

/* The first mapped word in [offset, end), or `end`, among words of objects in use only: a damaged or
 * forged map may break M1. For callers that do not know whether [offset, end) belongs to an object. */
uint64_t pointers_next(const struct allocator *a, uint64_t offset, uint64_t end);

/* The part of pm_check() that no program can spoil: headers, log, segment table, bitmaps, root, pointer map,
 * sums. -1 with a message. Locks. Linear in the metadata and the objects. */
int pointers_check_tables(struct allocator *a);

/* Whether a word leads out of the container only until the next commit. The commit will make the word lead
 * into the container, or be NULL there. */
typedef bool leads_out_until_commit(const uint64_t *word);

/* Check that each mapped pointer leads to a place that pm_check() allows. `allowed` may be NULL: no word
 * leads out. -1 with a message. Locks. Linear in the objects and the pointers. */
int pointers_check(struct allocator *a, leads_out_until_commit *allowed);

#endif
