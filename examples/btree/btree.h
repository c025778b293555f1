/*
 * B-tree of order 8: an ordered map from 64-bit keys to 64-bit values.
 *
 * Every node holds up to 7 items in ascending order; an inner node has one child more than items,
 * and child i holds the keys between items i - 1 and i. What must always hold:
 *   1. items are ascending within a node, and lie between the two items around it in the parent;
 *   2. every node but the root has at least 3 items, and no node has more than 7;
 *   3. all leaves have the same depth; an inner root has at least one item.
 * 2 and 3 bound the height by 1 + log4((n + 1) / 2); lookup, insert and remove take O(log n). A
 * node has 184 bytes and is at least three sevenths full.
 *
 * Not thread-safe. The map belongs to the container it was made in and is part of its transaction:
 * nothing is durable before pm_commit().
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

/** A new, empty tree, to be given back by btree_destroy(); NULL when out of memory. O(1). */
struct btree *btree_create(pm_container *c);

/**
 * Map `key` to `value`. 1 if the key is new, 0 if its value was replaced, -1 when out of memory,
 * and then the tree is valid and maps what it did before. O(log n).
 */
int btree_insert(pm_container *c, struct btree *t, uint64_t key, uint64_t value);

/** Whether `key` is there; then its value goes to `*value`, unless `value` is NULL. O(log n). */
bool btree_lookup(const struct btree *t, uint64_t key, uint64_t *value);

/** 1 if `key` was there and has been removed, 0 if it was absent. Needs no memory. O(log n). */
int btree_remove(pm_container *c, struct btree *t, uint64_t key);

/** Number of keys. O(1). */
uint64_t btree_size(const struct btree *t);

/**
 * Visit all keys in ascending order, until a visit returns nonzero; return that, else 0. The
 * visitor must not change the tree. O(n).
 */
int btree_walk(const struct btree *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
               void *arg);

/** NULL if invariants 1 to 3 and the size hold, else which one does not (static text). O(n). */
const char *btree_check(const struct btree *t);

/** Free all nodes and the tree itself; NULL is allowed. O(n). */
void btree_destroy(pm_container *c, struct btree *t);

#ifdef __cplusplus
}
#endif
#endif
