/*
 * Hash map with chaining: an unordered map from 64-bit keys to 64-bit values.
 *
 * The map is an array of buckets. Each bucket is the head of a chain: a linked list of the nodes whose
 * key hashes to the bucket. When there are more keys than buckets, the array is doubled and every node
 * is relinked. The invariants:
 *
 *   1. The number of buckets is a power of two and at least HASHMAP_BUCKETS_MIN.
 *   2. Every node is in the chain of the bucket that its key hashes to, and no key is there twice.
 *
 * Lookup and remove take O(1) on average. So does insert, with the doublings spread over all inserts. A
 * single insert that doubles takes O(n) and, in a container, makes one large transaction. A node has 24
 * bytes, and there are 8 to 16 bytes of buckets per key. The array does not shrink.
 *
 * Not thread-safe. The map lies in the container that it was made in, and its changes are part of the
 * container's transaction: nothing is durable before pm_commit().
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

/** Make a new, empty map. Free it by hashmap_destroy(). NULL if memory runs out. O(1). */
struct hashmap *hashmap_create(pm_container *c);

/**
 * Map `key` to `value`. Returns 1 if the key is new, 0 if its value was replaced. If memory runs out,
 * returns -1, and the map is as before. O(1) on average, O(n) when it doubles. If there is no memory
 * for doubling, the key is inserted all the same, and the chains grow longer.
 */
int hashmap_insert(pm_container *c, struct hashmap *t, uint64_t key, uint64_t value);

/** Whether `key` is in the map. If so, its value goes to `*value`, unless `value` is NULL. O(1). */
bool hashmap_lookup(const struct hashmap *t, uint64_t key, uint64_t *value);

/** Remove `key`. Returns 1, or 0 if the key was absent. Needs no memory. O(1). */
int hashmap_remove(pm_container *c, struct hashmap *t, uint64_t key);

/** Number of keys. O(1). */
uint64_t hashmap_size(const struct hashmap *t);

/**
 * Visit all keys, in no useful order. If a visit returns nonzero, stop and return this number; else
 * return 0. The visitor must not change the map. O(n).
 */
int hashmap_walk(const struct hashmap *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
                 void *arg);

/** NULL if invariants 1 and 2 and the size hold. Else a static text that names the broken one. O(n). */
const char *hashmap_check(const struct hashmap *t);

/** Free all nodes, the buckets and the map itself; NULL is allowed. O(n). */
void hashmap_destroy(pm_container *c, struct hashmap *t);

#ifdef __cplusplus
}
#endif
#endif
