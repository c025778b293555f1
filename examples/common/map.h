/*
 * The four example structures behind one table of functions. So a test, a benchmark or a command-line
 * program is written once and runs with all of them.
 *
 * Header-only, for C and C++, and for the persistent and the volatile build of the structures: link
 * `example_structures` or `example_structures_volatile`, never both. The header of each structure
 * describes the functions, under the same names. The indirect call is the only cost.
 */
#ifndef EXAMPLES_MAP_H
#define EXAMPLES_MAP_H

#include "../btree/btree.h"
#include "../hashmap/hashmap.h"
#include "../rbtree/rbtree.h"
#include "../skiplist/skiplist.h"

/** A walk calls it for each key. A nonzero result ends the walk. */
typedef int map_visit(uint64_t key, uint64_t value, void *arg);

/** A structure that maps 64-bit keys to 64-bit values. Immutable and static. */
struct map_ops {
    const char *name;
    bool ordered; /* `walk` visits the keys in ascending order */
    void *(*create)(pm_container *c);
    int (*insert)(pm_container *c, void *map, uint64_t key, uint64_t value);
    bool (*lookup)(const void *map, uint64_t key, uint64_t *value);
    int (*remove)(pm_container *c, void *map, uint64_t key);
    uint64_t (*size)(const void *map);
    int (*walk)(const void *map, map_visit *visit, void *arg);
    const char *(*check)(const void *map);
    void (*destroy)(pm_container *c, void *map);
};

/* A table needs functions of exactly its types, hence a wrapper around each function. A call through a
 * pointer that was cast to another function type is undefined, even if only a `void *` differs. */
#define MAP_DEFINE_OPS(NAME, ORDERED)                                                              \
    static inline void *NAME##_op_create(pm_container *c)                                          \
    {                                                                                              \
        return NAME##_create(c);                                                                   \
    }                                                                                              \
    static inline int NAME##_op_insert(pm_container *c, void *map, uint64_t key, uint64_t value)   \
    {                                                                                              \
        return NAME##_insert(c, (struct NAME *)map, key, value);                                   \
    }                                                                                              \
    static inline bool NAME##_op_lookup(const void *map, uint64_t key, uint64_t *value)            \
    {                                                                                              \
        return NAME##_lookup((const struct NAME *)map, key, value);                                \
    }                                                                                              \
    static inline int NAME##_op_remove(pm_container *c, void *map, uint64_t key)                   \
    {                                                                                              \
        return NAME##_remove(c, (struct NAME *)map, key);                                          \
    }                                                                                              \
    static inline uint64_t NAME##_op_size(const void *map)                                         \
    {                                                                                              \
        return NAME##_size((const struct NAME *)map);                                              \
    }                                                                                              \
    static inline int NAME##_op_walk(const void *map, map_visit *visit, void *arg)                 \
    {                                                                                              \
        return NAME##_walk((const struct NAME *)map, visit, arg);                                  \
    }                                                                                              \
    static inline const char *NAME##_op_check(const void *map)                                     \
    {                                                                                              \
        return NAME##_check((const struct NAME *)map);                                             \
    }                                                                                              \
    static inline void NAME##_op_destroy(pm_container *c, void *map)                               \
    {                                                                                              \
        NAME##_destroy(c, (struct NAME *)map);                                                     \
    }                                                                                              \
    static const struct map_ops NAME##_ops = {#NAME,                                               \
                                              ORDERED,                                             \
                                              NAME##_op_create,                                    \
                                              NAME##_op_insert,                                    \
                                              NAME##_op_lookup,                                    \
                                              NAME##_op_remove,                                    \
                                              NAME##_op_size,                                      \
                                              NAME##_op_walk,                                      \
                                              NAME##_op_check,                                     \
                                              NAME##_op_destroy}

MAP_DEFINE_OPS(rbtree, true);
MAP_DEFINE_OPS(btree, true);
MAP_DEFINE_OPS(skiplist, true);
MAP_DEFINE_OPS(hashmap, false);

/** All four tables, for loops. */
static const struct map_ops *const map_ops_all[] = {&rbtree_ops, &btree_ops, &skiplist_ops,
                                                    &hashmap_ops};
enum { MAP_OPS_COUNT = sizeof map_ops_all / sizeof map_ops_all[0] };

#endif
