/*
 * A store of pairs, each under a 64-bit key and with a value of one size, behind one table of
 * functions: METRADB, and structures on libpmemobj. Every change is a durable transaction of its
 * own. A store that cannot do what is asked prints why and exits.
 *
 * A store is used by one thread, several stores by as many.
 */
#ifndef BENCH_METRADB_STORE_H
#define BENCH_METRADB_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

struct store_ops {
    const char *name;
    /* Create one in a new file at `path`, for `pairs` pairs with values of `value_size` bytes. */
    void *(*open)(const char *path, size_t pairs, size_t value_size);
    /* True if the key was new, or was there, as it should be. */
    bool (*put)(void *store, uint64_t key, const void *value);
    bool (*replace)(void *store, uint64_t key, const void *value);
    bool (*get)(void *store, uint64_t key, void *value); /* a copy */
    bool (*remove)(void *store, uint64_t key);
    void (*close)(void *store);
};

extern const struct store_ops store_metradb, store_metradb_default, store_hashmap_tx,
    store_hashmap_atomic, store_ctree, store_btree, store_rbtree;

/* For those who implement a store. */

/** Say what failed, and exit. */
static inline void store_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline void *store_calloc(size_t size)
{
    void *p = calloc(1, size);
    if (!p)
        store_fail("calloc", "out of memory");
    return p;
}

#ifdef __cplusplus
}
#endif
#endif
