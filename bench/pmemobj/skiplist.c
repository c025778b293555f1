/*
 * Skip list of 8 levels on libpmemobj; examples/skiplist tells how it works. A node has 16 bytes
 * and 16 for each level it is in.
 */
#include "pmemobj/pool_map.h"

enum { LEVELS = 8 };

struct skiplist_node {
    uint64_t key;
    uint64_t value;
    TOID(struct skiplist_node) next[];
};

struct skiplist {
    TOID(struct skiplist_node) first[LEVELS];
    uint64_t size;
    uint64_t random; /* size and random change together and are announced together */
};

typedef TOID(struct skiplist_node) node_id;

static TOID(struct skiplist) map_of(PMEMoid map)
{
    return (TOID(struct skiplist)){map};
}

static void announce_counters(TOID(struct skiplist) t)
{
    pmemobj_tx_add_range(t.oid, offsetof(struct skiplist, size), 2 * sizeof(uint64_t));
}

/* For each level, the link (in the head or in a node) whose target is the first key >= `key`. */
static void find_links(TOID(struct skiplist) t, uint64_t key, node_id *link[static LEVELS])
{
    node_id *links = D_RW(t)->first;
    for (int level = LEVELS - 1; level >= 0; level--) {
        while (!TOID_IS_NULL(links[level])) {
            struct skiplist_node *n = D_RW(links[level]);
            if (n->key >= key)
                break;
            links = n->next;
        }
        link[level] = &links[level];
    }
}

static bool has_key(node_id n, uint64_t key)
{
    return !TOID_IS_NULL(n) && D_RO(n)->key == key;
}

static int draw_height(uint64_t *random)
{
    uint64_t x = *random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *random = x;

    int height = 1;
    for (x >>= 32; height < LEVELS && x % 4 == 0; x /= 4)
        height++;
    return height;
}

static PMEMoid create(void)
{
    TOID(struct skiplist) t = TX_ZNEW(struct skiplist);
    D_RW(t)->random = 0x9e3779b97f4a7c15;
    return t.oid;
}

static bool insert(PMEMoid map, uint64_t key, uint64_t value)
{
    TOID(struct skiplist) t = map_of(map);
    node_id *link[LEVELS];
    find_links(t, key, link);
    if (has_key(*link[0], key)) {
        TX_SET(*link[0], value, value);
        return false;
    }

    announce_counters(t);
    int height = draw_height(&D_RW(t)->random);
    node_id n = TX_ALLOC(struct skiplist_node,
                         sizeof(struct skiplist_node) + (size_t)height * sizeof(node_id));
    struct skiplist_node *node = D_RW(n);
    node->key = key;
    node->value = value;
    for (int level = 0; level < height; level++) {
        node->next[level] = *link[level];
        TX_ADD_DIRECT(link[level]);
        *link[level] = n;
    }
    D_RW(t)->size++;
    return true;
}

static bool lookup(PMEMoid map, uint64_t key, uint64_t *value)
{
    const node_id *links = D_RO(map_of(map))->first;
    for (int level = LEVELS - 1; level >= 0; level--)
        while (!TOID_IS_NULL(links[level])) {
            const struct skiplist_node *n = D_RO(links[level]);
            if (n->key >= key)
                break;
            links = n->next;
        }

    if (!has_key(links[0], key))
        return false;
    *value = D_RO(links[0])->value;
    return true;
}

static bool remove_key(PMEMoid map, uint64_t key)
{
    TOID(struct skiplist) t = map_of(map);
    node_id *link[LEVELS];
    find_links(t, key, link);
    node_id n = *link[0];
    if (!has_key(n, key))
        return false;
    for (int level = 0; level < LEVELS && TOID_EQUALS(*link[level], n); level++) {
        TX_ADD_DIRECT(link[level]);
        *link[level] = D_RO(n)->next[level];
    }
    TX_FREE(n);
    TX_SET(t, size, D_RO(t)->size - 1);
    return true;
}

static uint64_t size(PMEMoid map)
{
    return D_RO(map_of(map))->size;
}

const struct pool_map pool_skiplist = {"skiplist", create, insert, lookup, remove_key, size};
