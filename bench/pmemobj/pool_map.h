/*
 * The four example structures once more, on libpmemobj, and a crit-bit tree: same algorithms, same contents of a node,
 * but pointers are typed object identifiers of 16 bytes (TOID) and every store to an object that
 * was there before the transaction is announced. Written for this comparison after libpmemobj's
 * manual pages; how it keeps the log short:
 *   - an object allocated in the transaction is never announced, the library writes it out whole;
 *   - where one field changes, that field is announced (TX_SET), where several do, the object,
 *     once;
 *   - a walk keeps the address of the link that it may change, so that no chain is walked twice.
 *
 * Except for `lookup` and `size` the functions must be called inside a transaction, as the manual
 * advises for functions to be composed; so a batch of operations is one transaction and nothing is
 * nested. When memory runs out the transaction aborts.
 */
#ifndef BENCH_POOL_MAP_H
#define BENCH_POOL_MAP_H

#include <libpmemobj.h>
#include <stdbool.h>
#include <stdint.h>

struct pool_map {
    const char *name;
    PMEMoid (*create)(void);
    bool (*insert)(PMEMoid map, uint64_t key, uint64_t value); /* false: the key was there */
    bool (*lookup)(PMEMoid map, uint64_t key, uint64_t *value);
    bool (*remove)(PMEMoid map, uint64_t key); /* false: the key was not there */
    uint64_t (*size)(PMEMoid map);
};

extern const struct pool_map pool_rbtree, pool_btree, pool_skiplist, pool_hashmap, pool_ctree;

struct root {
    PMEMoid map;
};

POBJ_LAYOUT_BEGIN(bench);
POBJ_LAYOUT_ROOT(bench, struct root)
POBJ_LAYOUT_TOID(bench, struct rbtree)
POBJ_LAYOUT_TOID(bench, struct rbtree_node)
POBJ_LAYOUT_TOID(bench, struct btree)
POBJ_LAYOUT_TOID(bench, struct btree_node)
POBJ_LAYOUT_TOID(bench, struct skiplist)
POBJ_LAYOUT_TOID(bench, struct skiplist_node)
POBJ_LAYOUT_TOID(bench, struct hashmap)
POBJ_LAYOUT_TOID(bench, struct hashmap_node)
POBJ_LAYOUT_TOID(bench, struct hashmap_buckets)
POBJ_LAYOUT_TOID(bench, struct ctree)
POBJ_LAYOUT_TOID(bench, struct ctree_node)
POBJ_LAYOUT_END(bench)

#endif
