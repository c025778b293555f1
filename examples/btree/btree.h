/*
 * B-tree of order 8: an ordered map from 64-bit keys to 64-bit values.
 *
 * Every node holds up to 7 items in ascending order. An inner node has one child more than items.
 * Child i holds the keys between items i - 1 and i. The invariants:
 *
 *   1. Items are ascending within a node, and lie between the two items around the node in its parent.
 *   2. Every node but the root has at least 3 items, and no node has more than 7.
 *   3. All leaves have the same depth. An inner root has at least one item.
 *
 * Invariants 2 and 3 bound the height by 1 + log4((n + 1) / 2). Lookup, insert and remove take
 * O(log n). A node has 184 bytes and is at least three sevenths full.
 *
 * Not thread-safe. The map lies in the container that it was made in, and its changes are part of the
 * container's transaction: nothing is durable before pm_commit().
 */
#ifndef EXAMPLES_BTREE_H
#define EXAMPLES_BTREE_H

#include <libpm.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BTREE_ORDER = 8, /* most children of a node */
    BTREE_ITEMS_MAX = BTREE_ORDER - 1,
    BTREE_ITEMS_MIN = BTREE_ORDER / 2 - 1, /* of a node that is not the root */
};

struct btree_item {
    uint64_t key;
    uint64_t value;
};

struct btree_node {
    uint32_t count; /* items */
    uint32_t leaf;  /* 1: no children; 0: count + 1 children */
    struct btree_item items[BTREE_ITEMS_MAX];
    struct btree_node *children[BTREE_ORDER];
};

struct btree {
    struct btree_node *root; /* never NULL; an empty leaf when there are no keys */
    uint64_t size;           /* keys */
};

/** Make a new, empty tree. Free it by btree_destroy(). NULL if memory runs out. O(1). */
struct btree *btree_create(pm_container *c);

/**
 * Map `key` to `value`. Returns 1 if the key is new, 0 if its value was replaced. If memory runs out,
 * returns -1: the tree is valid, and maps the same keys to the same values as before. O(log n).
 */
int btree_insert(pm_container *c, struct btree *t, uint64_t key, uint64_t value);

/** Whether `key` is in the map. If so, its value goes to `*value`, unless `value` is NULL. O(log n). */
bool btree_lookup(const struct btree *t, uint64_t key, uint64_t *value);

/** Remove `key`. Returns 1, or 0 if the key was absent. Needs no memory. O(log n). */
int btree_remove(pm_container *c, struct btree *t, uint64_t key);

/** Number of keys. O(1). */
uint64_t btree_size(const struct btree *t);

/**
 * Visit all keys in ascending order. If a visit returns nonzero, stop and return this number; else
 * return 0. The visitor must not change the tree. O(n).
 */
int btree_walk(const struct btree *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
               void *arg);

/** NULL if invariants 1 to 3 and the size hold. Else a static text that names the broken one. O(n). */
const char *btree_check(const struct btree *t);

/** Free all nodes and the tree itself; NULL is allowed. O(n). */
void btree_destroy(pm_container *c, struct btree *t);

#ifdef __cplusplus
}
#endif
#endif
