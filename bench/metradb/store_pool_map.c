/*
 * The trees of bench/pmemobj/ as stores. They map numbers to numbers: here to the offset of an object
 * with the value, which is allocated in the same transaction; as PMDK's own examples do.
 */
#include "metradb/store.h"
#include "pmemobj/pool_map.h"

#include <string.h>

enum { TYPE_VALUE = 1000 }; /* of objects; the layout's types are below */

struct store {
    PMEMobjpool *pool;
    const struct pool_map *ops;
    PMEMoid map;
    size_t value_size;
};

static void *open_store(const struct pool_map *ops, const char *path, size_t pairs,
                        size_t value_size)
{
    struct store *s = store_calloc(sizeof *s);
    s->ops = ops;
    s->value_size = value_size;
    /* Ample: a node has less than 300 bytes. */
    s->pool = pmemobj_create(path, POBJ_LAYOUT_NAME(bench),
                             (128 << 20) + pairs * (2 * value_size + 512), 0600);
    if (!s->pool)
        store_fail("pmemobj_create", pmemobj_errormsg());
    TOID(struct root) root = POBJ_ROOT(s->pool, struct root);
    TX_BEGIN(s->pool)
    {
        TX_SET(root, map, ops->create());
    }
    TX_ONABORT
    {
        store_fail(ops->name, pmemobj_errormsg());
    }
    TX_END
    s->map = D_RO(root)->map;
    return s;
}

static void *open_ctree(const char *path, size_t pairs, size_t value_size)
{
    return open_store(&pool_ctree, path, pairs, value_size);
}

static void *open_btree(const char *path, size_t pairs, size_t value_size)
{
    return open_store(&pool_btree, path, pairs, value_size);
}

static void *open_rbtree(const char *path, size_t pairs, size_t value_size)
{
    return open_store(&pool_rbtree, path, pairs, value_size);
}

static PMEMoid object_at(const struct store *s, uint64_t offset)
{
    return (PMEMoid){s->map.pool_uuid_lo, offset};
}

/* Call inside a transaction. */
static uint64_t new_value(const struct store *s, const void *value)
{
    PMEMoid object = pmemobj_tx_alloc(s->value_size, TYPE_VALUE);
    memcpy(pmemobj_direct(object), value, s->value_size);
    return object.off;
}

static bool put(void *store, uint64_t key, const void *value)
{
    struct store *s = store;
    volatile bool inserted = false; /* the abort path is a longjmp */
    TX_BEGIN(s->pool)
    {
        inserted = s->ops->insert(s->map, key, new_value(s, value));
    }
    TX_ONABORT
    {
        store_fail("put", pmemobj_errormsg());
    }
    TX_END
    return inserted;
}

static bool replace(void *store, uint64_t key, const void *value)
{
    struct store *s = store;
    uint64_t old;
    if (!s->ops->lookup(s->map, key, &old))
        return false;
    TX_BEGIN(s->pool)
    {
        s->ops->insert(s->map, key, new_value(s, value));
        pmemobj_tx_free(object_at(s, old));
    }
    TX_ONABORT
    {
        store_fail("replace", pmemobj_errormsg());
    }
    TX_END
    return true;
}

static bool get(void *store, uint64_t key, void *value)
{
    struct store *s = store;
    uint64_t offset;
    if (!s->ops->lookup(s->map, key, &offset))
        return false;
    memcpy(value, pmemobj_direct(object_at(s, offset)), s->value_size);
    return true;
}

static bool remove_key(void *store, uint64_t key)
{
    struct store *s = store;
    uint64_t offset;
    if (!s->ops->lookup(s->map, key, &offset))
        return false;
    TX_BEGIN(s->pool)
    {
        s->ops->remove(s->map, key);
        pmemobj_tx_free(object_at(s, offset));
    }
    TX_ONABORT
    {
        store_fail("remove", pmemobj_errormsg());
    }
    TX_END
    return true;
}

static void close_store(void *store)
{
    struct store *s = store;
    pmemobj_close(s->pool);
    free(s);
}

const struct store_ops store_ctree = {"ctree", open_ctree, put,        replace,
                                      get,     remove_key, close_store};
const struct store_ops store_btree = {"btree", open_btree, put,        replace,
                                      get,     remove_key, close_store};
const struct store_ops store_rbtree = {"rbtree", open_rbtree, put,        replace,
                                       get,      remove_key,  close_store};
