/* Our structures on libpmemobj (bench/pmemobj/). */
#include "pmemobj/pool_map.h"
#include "pmemobj/written.h"
#include "structures/peer.h"

#include <string.h>

const char *const peer_name = BENCH_PEER;
const size_t peer_preload_batch = 10000; /* its log holds a record for each range of it */

static PMEMobjpool *pool;
static const struct pool_map *ops;
static PMEMoid map;

static bool insert(uint64_t key)
{
    return ops->insert(map, key, peer_value(key));
}

static bool lookup(uint64_t key)
{
    uint64_t value;
    return ops->lookup(map, key, &value) && value == peer_value(key);
}

static bool remove_key(uint64_t key)
{
    return ops->remove(map, key);
}

void peer_open(const char *path, const char *structure, size_t keys_max)
{
    static const struct pool_map *const all[] = {&pool_rbtree, &pool_btree, &pool_skiplist,
                                                 &pool_hashmap};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i]->name, structure) == 0)
            ops = all[i];
    if (!ops)
        peer_fail(structure, "no such structure");

    /* Ample: the largest node per key is below 160 bytes; the rest is for logs. */
    pool = pmemobj_create(path, POBJ_LAYOUT_NAME(bench), (128 << 20) + 512 * keys_max, 0600);
    if (!pool)
        peer_fail("pmemobj_create", pmemobj_errormsg());
    TOID(struct root) root = POBJ_ROOT(pool, struct root);
    TX_BEGIN(pool)
    {
        TX_SET(root, map, ops->create());
    }
    TX_ONABORT
    {
        peer_fail(structure, pmemobj_errormsg());
    }
    TX_END
    map = D_RO(root)->map;
}

size_t peer_apply(enum peer_operation operation, const uint64_t *keys, size_t count)
{
    if (operation == PEER_LOOKUP)
        return peer_count(lookup, keys, count);

    peer_step *const step = operation == PEER_INSERT ? insert : remove_key;
    volatile size_t right = 0; /* the abort path is a longjmp */
    TX_BEGIN(pool)
    {
        right = peer_count(step, keys, count);
    }
    TX_ONABORT
    {
        peer_fail("transaction", pmemobj_errormsg());
    }
    TX_END
    return right;
}

bool peer_read_counts(struct peer_counts *counts)
{
    if (!pmemobj_written)
        return false;
    *counts = (struct peer_counts){.lines_flushed = pmemobj_written() / 64}; /* its logs among them */
    return true;
}

uint64_t peer_size(void)
{
    return ops->size(map);
}

void peer_close(void)
{
    pmemobj_close(pool);
}
