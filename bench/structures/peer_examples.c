/* The structures of examples/, on malloc or on libpm: whichever build of them is linked. */
#include "common/map.h"
#include "structures/peer.h"
#include "structures/store.h"

#include <string.h>

static pm_container *container;
static const struct map_ops *ops;
static void *map;

static bool insert(uint64_t key)
{
    return ops->insert(container, map, key, peer_value(key)) == 1;
}

static bool lookup(uint64_t key)
{
    uint64_t value;
    return ops->lookup(map, key, &value) && value == peer_value(key);
}

static bool remove_key(uint64_t key)
{
    return ops->remove(container, map, key) == 1;
}

void peer_open(const char *path, const char *structure, size_t keys_max)
{
    (void)keys_max; /* containers grow */
    for (size_t i = 0; i < MAP_OPS_COUNT; i++)
        if (strcmp(map_ops_all[i]->name, structure) == 0)
            ops = map_ops_all[i];
    if (!ops)
        peer_fail(structure, "no such structure");
    container = store_open(path);
    map = ops->create(container);
    if (!map)
        peer_fail(structure, "out of memory");
    store_commit(container);
}

size_t peer_apply(enum peer_operation operation, const uint64_t *keys, size_t count)
{
    static peer_step *const steps[] = {insert, lookup, remove_key};
    size_t right = peer_count(steps[operation], keys, count);
    if (operation != PEER_LOOKUP)
        store_commit(container);
    return right;
}

bool peer_read_counts(struct peer_counts *counts)
{
    return store_read_counts(container, counts);
}

uint64_t peer_size(void)
{
    return ops->size(map);
}

void peer_close(void)
{
    const char *offence = ops->check(map);
    if (offence)
        peer_fail("check", offence);
    store_close(container);
}
