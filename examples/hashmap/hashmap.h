/*
 * Hash map with chaining: an unordered map from 64-bit keys to 64-bit values.
 *
 * An array of buckets, each the head of a linked list of the nodes whose key hashes to it. When
 * there are more keys than buckets the array is doubled and every node relinked. What must always
 * hold:
 *   1. the number of buckets is a power of two and at least HASHMAP_BUCKETS_MIN;
 *   2. every node is in the chain of the bucket its key hashes to, and no key is there twice.
 * Lookup and remove take O(1) on average, insert too if spread over the doublings; a single insert
 * that doubles takes O(n) and, in a container, makes one large transaction. A node has 24 bytes,
 * and there are 8 to 16 bytes of buckets per key; the array does not shrink.
 *
 * Not thread-safe. The map belongs to the container it was made in and is part of its transaction:
 * nothing is durable before pm_commit().
 */
#ifndef EXAMPLES_HASHMAP_H
#define EXAMPLES_HASHMAP_H

#include <libpm.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HASHMAP_BUCKETS_MIN = 16 };

struct hashmap_node {
    uint64_t key;
    uint64_t value;
    struct hashmap_node *next; /* in the chain; NULL at its end */
};

struct hashmap {
    struct hashmap_node **buckets; /* `bucket_count` heads of chains, NULL where empty */
    uint64_t bucket_count;
    uint64_t size; /* keys */
};

/** A new, empty map, to be given back by hashmap_destroy(); NULL when out of memory. O(1). */
struct hashmap *hashmap_create(pm_container *c);

/**
 * Map `key` to `value`. 1 if the key is new, 0 if its value was replaced, -1 when out of memory,
 * and then the map is as before. O(1) on average, O(n) when it doubles. If there is no memory for
 * doubling, the key is inserted all the same and the chains grow longer.
 */
int hashmap_insert(pm_container *c, struct hashmap *t, uint64_t key, uint64_t value);

/** Whether `key` is there; then its value goes to `*value`, unless `value` is NULL. O(1). */
bool hashmap_lookup(const struct hashmap *t, uint64_t key, uint64_t *value);

/** 1 if `key` was there and has been removed, 0 if it was absent. Needs no memory. O(1). */
int hashmap_remove(pm_container *c, struct hashmap *t, uint64_t key);

/** Number of keys. O(1). */
uint64_t hashmap_size(const struct hashmap *t);

/**
 * Visit all keys, in no useful order, until a visit returns nonzero; return that, else 0. The
 * visitor must not change the map. O(n).
 */
int hashmap_walk(const struct hashmap *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
                 void *arg);

/** NULL if invariants 1 and 2 and the size hold, else which one does not (static text). O(n). */
const char *hashmap_check(const struct hashmap *t);

/** Free all nodes, the buckets and the map itself; NULL is allowed. O(n). */
void hashmap_destroy(pm_container *c, struct hashmap *t);

#ifdef __cplusplus
}
#endif
#endif
