/* Chained hash map on libpmemobj; examples/hashmap tells how it works. A node has 32 bytes. */
#include "pmemobj/pool_map.h"

enum { BUCKETS_MIN = 16 };

struct hashmap_node {
    uint64_t key;
    uint64_t value;
    TOID(struct hashmap_node) next;
};

struct hashmap_buckets {
    uint64_t count;
    TOID(struct hashmap_node) head[];
};

struct hashmap {
    TOID(struct hashmap_buckets) buckets;
    uint64_t size;
};

typedef TOID(struct hashmap_node) node_id;

static uint64_t bucket_of(uint64_t key, uint64_t bucket_count)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccd;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53;
    key ^= key >> 33;
    return key & (bucket_count - 1);
}

static TOID(struct hashmap) map_of(PMEMoid map)
{
    return (TOID(struct hashmap)){map};
}

static TOID(struct hashmap_buckets) new_buckets(uint64_t count)
{
    TOID(struct hashmap_buckets)
    buckets =
        TX_ZALLOC(struct hashmap_buckets, sizeof(struct hashmap_buckets) + count * sizeof(node_id));
    D_RW(buckets)->count = count;
    return buckets;
}

/* The head of the chain that the key belongs to. */
static node_id *find_head(TOID(struct hashmap) t, uint64_t key)
{
    struct hashmap_buckets *buckets = D_RW(D_RW(t)->buckets);
    return &buckets->head[bucket_of(key, buckets->count)];
}

/* The link whose target is the node of the key, or the null at the end of its chain. */
static node_id *find_link(TOID(struct hashmap) t, uint64_t key)
{
    node_id *link = find_head(t, key);
    while (!TOID_IS_NULL(*link)) {
        struct hashmap_node *n = D_RW(*link);
        if (n->key == key)
            break;
        link = &n->next;
    }
    return link;
}

static PMEMoid create(void)
{
    TOID(struct hashmap) t = TX_NEW(struct hashmap);
    *D_RW(t) = (struct hashmap){.buckets = new_buckets(BUCKETS_MIN)};
    return t.oid;
}

static void grow(TOID(struct hashmap) t)
{
    const struct hashmap_buckets *old = D_RO(D_RO(t)->buckets);
    TOID(struct hashmap_buckets) grown = new_buckets(2 * old->count);
    struct hashmap_buckets *new = D_RW(grown);
    for (uint64_t i = 0; i < old->count; i++)
        for (node_id n = old->head[i], next; !TOID_IS_NULL(n); n = next) {
            node_id *head = &new->head[bucket_of(D_RO(n)->key, new->count)];
            next = D_RO(n)->next;
            TX_SET(n, next, *head);
            *head = n;
        }
    TX_FREE(D_RO(t)->buckets);
    TX_SET(t, buckets, grown);
}

static bool insert(PMEMoid map, uint64_t key, uint64_t value)
{
    TOID(struct hashmap) t = map_of(map);
    node_id found = *find_link(t, key);
    if (!TOID_IS_NULL(found)) {
        TX_SET(found, value, value);
        return false;
    }
    if (D_RO(t)->size >= D_RO(D_RO(t)->buckets)->count)
        grow(t);
    node_id *head = find_head(t, key);
    node_id n = TX_NEW(struct hashmap_node);
    *D_RW(n) = (struct hashmap_node){.key = key, .value = value, .next = *head};
    TX_ADD_DIRECT(head);
    *head = n;
    TX_SET(t, size, D_RO(t)->size + 1);
    return true;
}

static bool lookup(PMEMoid map, uint64_t key, uint64_t *value)
{
    node_id found = *find_link(map_of(map), key);
    if (TOID_IS_NULL(found))
        return false;
    *value = D_RO(found)->value;
    return true;
}

static bool remove_key(PMEMoid map, uint64_t key)
{
    TOID(struct hashmap) t = map_of(map);
    node_id *link = find_link(t, key);
    node_id n = *link;
    if (TOID_IS_NULL(n))
        return false;
    TX_ADD_DIRECT(link);
    *link = D_RO(n)->next;
    TX_FREE(n);
    TX_SET(t, size, D_RO(t)->size - 1);
    return true;
}

static uint64_t size(PMEMoid map)
{
    return D_RO(map_of(map))->size;
}

const struct pool_map pool_hashmap = {"hashmap", create, insert, lookup, remove_key, size};
