/*
 * Red-black tree: an ordered map from 64-bit keys to 64-bit values.
 *
 * A binary search tree whose nodes are red or black. What must always hold:
 *   1. every key in the left subtree of a node is less than its key, in the right one greater;
 *   2. the root is black;
 *   3. a red node has no red child;
 *   4. all paths from a node down to a missing child pass the same number of black nodes;
 *   5. the parent pointer of a node names the node whose child it is.
 * 3 and 4 bound the height by 2 log2(n + 1), hence lookup, insert and remove take O(log n). One
 * node of 48 bytes per key.
 *
 * Not thread-safe. The map belongs to the container it was made in and is part of its transaction:
 * nothing is durable before pm_commit().
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

/** A new, empty tree, to be given back by rbtree_destroy(); NULL when out of memory. O(1). */
struct rbtree *rbtree_create(pm_container *c);

/**
 * Map `key` to `value`. 1 if the key is new, 0 if its value was replaced, -1 when out of memory,
 * and then the tree is as before. O(log n).
 */
int rbtree_insert(pm_container *c, struct rbtree *t, uint64_t key, uint64_t value);

/** Whether `key` is there; then its value goes to `*value`, unless `value` is NULL. O(log n). */
bool rbtree_lookup(const struct rbtree *t, uint64_t key, uint64_t *value);

/** 1 if `key` was there and has been removed, 0 if it was absent. Needs no memory. O(log n). */
int rbtree_remove(pm_container *c, struct rbtree *t, uint64_t key);

/** Number of keys. O(1). */
uint64_t rbtree_size(const struct rbtree *t);

/**
 * Visit all keys in ascending order, until a visit returns nonzero; return that, else 0. The
 * visitor must not change the tree. O(n).
 */
int rbtree_walk(const struct rbtree *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
                void *arg);

/** NULL if invariants 1 to 5 and the size hold, else which one does not (static text). O(n). */
const char *rbtree_check(const struct rbtree *t);

/** Free all nodes and the tree itself; NULL is allowed. O(n). */
void rbtree_destroy(pm_container *c, struct rbtree *t);

#ifdef __cplusplus
}
#endif
#endif
