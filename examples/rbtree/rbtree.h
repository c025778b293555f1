/*
 * Red-black tree: an ordered map from 64-bit keys to 64-bit values.
 *
 * A binary search tree whose nodes are red or black. The invariants:
 *
 *   1. Every key in the left subtree of a node is less than the node's key, in the right one greater.
 *   2. The root is black.
 *   3. A red node has no red child.
 *   4. All paths from a node down to a missing child pass the same number of black nodes.
 *   5. The parent pointer of a node leads to the node whose child it is.
 *
 * Invariants 3 and 4 bound the height by 2 log2(n + 1). Hence lookup, insert and remove take O(log n).
 * Each key has a node of 48 bytes.
 *
 * Not thread-safe. The map lies in the container that it was made in, and its changes are part of the
 * container's transaction: nothing is durable before pm_commit().
 */
#ifndef EXAMPLES_RBTREE_H
#define EXAMPLES_RBTREE_H

#include <libpm.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rbtree_colour { RBTREE_RED, RBTREE_BLACK };

struct rbtree_node {
    uint64_t key;
    uint64_t value;
    struct rbtree_node *child[2]; /* [0] lesser keys, [1] greater keys; NULL where there are none */
    struct rbtree_node *parent;   /* NULL at the root */
    enum rbtree_colour colour;
};

struct rbtree {
    struct rbtree_node *root; /* NULL when empty */
    uint64_t size;            /* keys */
};

/** Make a new, empty tree. Free it by rbtree_destroy(). NULL if memory runs out. O(1). */
struct rbtree *rbtree_create(pm_container *c);

/**
 * Map `key` to `value`. Returns 1 if the key is new, 0 if its value was replaced. If memory runs out,
 * returns -1, and the tree is as before. O(log n).
 */
int rbtree_insert(pm_container *c, struct rbtree *t, uint64_t key, uint64_t value);

/** Whether `key` is in the map. If so, its value goes to `*value`, unless `value` is NULL. O(log n). */
bool rbtree_lookup(const struct rbtree *t, uint64_t key, uint64_t *value);

/** Remove `key`. Returns 1, or 0 if the key was absent. Needs no memory. O(log n). */
int rbtree_remove(pm_container *c, struct rbtree *t, uint64_t key);

/** Number of keys. O(1). */
uint64_t rbtree_size(const struct rbtree *t);

/**
 * Visit all keys in ascending order. If a visit returns nonzero, stop and return this number; else
 * return 0. The visitor must not change the tree. O(n).
 */
int rbtree_walk(const struct rbtree *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
                void *arg);

/** NULL if invariants 1 to 5 and the size hold. Else a static text that names the broken one. O(n). */
const char *rbtree_check(const struct rbtree *t);

/** Free all nodes and the tree itself; NULL is allowed. O(n). */
void rbtree_destroy(pm_container *c, struct rbtree *t);

#ifdef __cplusplus
}
#endif
#endif
