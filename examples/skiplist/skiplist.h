/*
 * Skip list of 8 levels: an ordered map from 64-bit keys to 64-bit values.
 *
 * A sorted linked list (level 0) with express lanes above. A node of height h is in the lists of levels
 * 0 to h - 1. Heights are random: about 1 in 4 nodes of a level is also in the next level. The
 * invariants:
 *
 *   1. Every level is in ascending order of keys.
 *   2. Every node of a level is also in the level below, in the same order.
 *
 * Lookup, insert and remove take O(log n) on average up to some 4^8 keys, and O(n / 4^7) beyond. A node
 * has 16 bytes, and 8 more for each of its levels: 1.33 levels on average.
 *
 * The heights come from a generator whose state is in the list. The state is undone and committed with
 * the rest. So the same calls always build the same list, also across restarts.
 *
 * Not thread-safe. The map lies in the container that it was made in, and its changes are part of the
 * container's transaction: nothing is durable before pm_commit().
 */
#ifndef EXAMPLES_SKIPLIST_H
#define EXAMPLES_SKIPLIST_H

#include <libpm.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SKIPLIST_LEVELS = 8 };

struct skiplist_node {
    uint64_t key;
    uint64_t value;
    struct skiplist_node *next[]; /* one for each level the node is in; NULL at the end */
};

struct skiplist {
    struct skiplist_node *first[SKIPLIST_LEVELS]; /* of each level; NULL where it is empty */
    uint64_t size;                                /* keys */
    uint64_t random;                              /* state of the generator, never 0 */
};

/** Make a new, empty list. Free it by skiplist_destroy(). NULL if memory runs out. O(1). */
struct skiplist *skiplist_create(pm_container *c);

/**
 * Map `key` to `value`. Returns 1 if the key is new, 0 if its value was replaced. If memory runs out,
 * returns -1, and the list is as before. O(log n) on average.
 */
int skiplist_insert(pm_container *c, struct skiplist *t, uint64_t key, uint64_t value);

/** Whether `key` is in the map. If so, its value goes to `*value`, unless `value` is NULL. O(log n) on
 * average. */
bool skiplist_lookup(const struct skiplist *t, uint64_t key, uint64_t *value);

/** Remove `key`. Returns 1, or 0 if the key was absent. Needs no memory. O(log n) on average. */
int skiplist_remove(pm_container *c, struct skiplist *t, uint64_t key);

/** Number of keys. O(1). */
uint64_t skiplist_size(const struct skiplist *t);

/**
 * Visit all keys in ascending order. If a visit returns nonzero, stop and return this number; else
 * return 0. The visitor must not change the list. O(n).
 */
int skiplist_walk(const struct skiplist *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
                  void *arg);

/** NULL if invariants 1 and 2 and the size hold. Else a static text that names the broken one. O(n). */
const char *skiplist_check(const struct skiplist *t);

/** Free all nodes and the list itself; NULL is allowed. O(n). */
void skiplist_destroy(pm_container *c, struct skiplist *t);

#ifdef __cplusplus
}
#endif
#endif
