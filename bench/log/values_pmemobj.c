/* On libpmemobj, with the structures of bench/pmemobj/. The value of a key is an object's place in the pool. */
#include "log/values.h"
#include "pmemobj/pool_map.h"
#include "pmemobj/written.h"

const char *const values_peer = BENCH_PEER;

static PMEMobjpool *pool;
static const struct pool_map *ops;
static PMEMoid map; /* of sps: the array */

static void fail(const char *what)
{
    values_fail(what, pmemobj_errormsg());
}

void values_open(const char *path, const char *structure, uint64_t count, unsigned live_percent)
{
    if (live_percent)
        values_fail("--live-percent", "is an option of libpm");
    static const struct pool_map *const all[] = {&pool_rbtree, &pool_btree, &pool_hashmap};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i]->name, structure) == 0)
            ops = all[i];
    pool = pmemobj_create(path, POBJ_LAYOUT_NAME(bench), (128 << 20) + 1024 * count, 0600);
    if (!pool)
        fail("pmemobj_create");
    TOID(struct root) root = POBJ_ROOT(pool, struct root);
    values_begin();
    PMEMoid made = ops ? ops->create() : pmemobj_tx_zalloc(count * VALUE_BYTES, 0);
    TX_SET(root, map, made);
    values_commit();
    map = D_RO(root)->map;
}

void values_begin(void)
{
    if (pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) != 0)
        fail("pmemobj_tx_begin");
}

static void *at(uint64_t offset)
{
    return (char *)pool + offset;
}

void values_insert(uint64_t key, uint64_t number)
{
    PMEMoid value = pmemobj_tx_alloc(VALUE_BYTES, 0);
    if (OID_IS_NULL(value))
        fail("pmemobj_tx_alloc");
    values_fill(at(value.off), number);
    if (!ops->insert(map, key, value.off))
        values_fail("insert", "the key was there");
}

static void *value_of(uint64_t key)
{
    uint64_t value;
    if (!ops)
        return at(map.off + key * VALUE_BYTES);
    if (!ops->lookup(map, key, &value))
        values_fail("lookup", "the key is not there");
    return at(value);
}

static void *changing(uint64_t key)
{
    void *value = value_of(key);
    if (pmemobj_tx_add_range_direct(value, VALUE_BYTES) != 0)
        fail("pmemobj_tx_add_range_direct");
    return value;
}

void values_update(uint64_t key, uint64_t number)
{
    values_fill(changing(key), number);
}

void values_swap(uint64_t a, uint64_t b)
{
    void *first = changing(a), *second = changing(b);
    values_exchange(first, second);
}

void values_commit(void)
{
    pmemobj_tx_commit();
    if (pmemobj_tx_end() != 0)
        fail("pmemobj_tx_end");
}

uint64_t values_first(uint64_t key)
{
    return *(const uint64_t *)value_of(key);
}

uint64_t values_written(void)
{
    return pmemobj_written ? pmemobj_written() : UINT64_MAX;
}

void values_close(void)
{
    pmemobj_close(pool);
}
