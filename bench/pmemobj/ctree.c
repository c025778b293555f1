/*
 * Crit-bit tree on libpmemobj: a trie of 64-bit keys in which only bits that tell two keys apart
 * have a node. An insertion makes one node and changes one slot, a removal frees one and changes one
 * slot; nothing is ever balanced. A node has 80 bytes.
 *
 * What must always hold: below the slots of a node with bit b all keys agree in the bits above b,
 * and those below slot[i] have i in bit b. So bits fall on every way down.
 */
#include "pmemobj/pool_map.h"

struct ctree_slot {
    TOID(struct ctree_node) node; /* null: the slot is a key with its value */
    uint64_t key;
    uint64_t value;
};

struct ctree_node {
    uint64_t bit; /* number */
    struct ctree_slot slot[2];
};

struct ctree {
    struct ctree_slot root; /* in use if there is a key */
    uint64_t size;
};

typedef TOID(struct ctree_node) node_id;

static TOID(struct ctree) map_of(PMEMoid map)
{
    return (TOID(struct ctree)){map};
}

static unsigned bit_of(uint64_t key, uint64_t bit)
{
    return key >> bit & 1;
}

/* The only slot on the way down in which the key could be. */
static struct ctree_slot *find_slot(TOID(struct ctree) t, uint64_t key)
{
    struct ctree_slot *slot = &D_RW(t)->root;
    while (!TOID_IS_NULL(slot->node)) {
        struct ctree_node *n = D_RW(slot->node);
        slot = &n->slot[bit_of(key, n->bit)];
    }
    return slot;
}

static PMEMoid create(void)
{
    return TX_ZNEW(struct ctree).oid;
}

/* Make room for a key that differs in `bit` from all below the slot where it belongs. */
static void split(TOID(struct ctree) t, uint64_t bit, struct ctree_slot new)
{
    struct ctree_slot *slot = &D_RW(t)->root;
    while (!TOID_IS_NULL(slot->node) && D_RO(slot->node)->bit > bit) {
        struct ctree_node *n = D_RW(slot->node);
        slot = &n->slot[bit_of(new.key, n->bit)];
    }
    node_id n = TX_NEW(struct ctree_node);
    struct ctree_node *node = D_RW(n);
    node->bit = bit;
    node->slot[bit_of(new.key, bit)] = new;
    node->slot[!bit_of(new.key, bit)] = *slot;
    TX_ADD_DIRECT(slot);
    slot->node = n;
}

static bool insert(PMEMoid map, uint64_t key, uint64_t value)
{
    TOID(struct ctree) t = map_of(map);
    const struct ctree_slot new = {.key = key, .value = value};
    struct ctree_slot *slot = find_slot(t, key);
    uint64_t size = D_RO(t)->size;
    if (size > 0 && slot->key == key) {
        TX_ADD_DIRECT(&slot->value);
        slot->value = value;
        return false;
    }
    if (size > 0) {
        split(t, 63 - (uint64_t)__builtin_clzll(slot->key ^ key), new);
    } else {
        TX_ADD_DIRECT(slot);
        *slot = new;
    }
    TX_SET(t, size, size + 1);
    return true;
}

static bool lookup(PMEMoid map, uint64_t key, uint64_t *value)
{
    TOID(struct ctree) t = map_of(map);
    const struct ctree_slot *slot = find_slot(t, key);
    if (D_RO(t)->size == 0 || slot->key != key)
        return false;
    *value = slot->value;
    return true;
}

static bool remove_key(PMEMoid map, uint64_t key)
{
    TOID(struct ctree) t = map_of(map);
    struct ctree_slot *above = NULL, *slot = &D_RW(t)->root;
    while (!TOID_IS_NULL(slot->node)) {
        struct ctree_node *n = D_RW(slot->node);
        above = slot;
        slot = &n->slot[bit_of(key, n->bit)];
    }
    if (D_RO(t)->size == 0 || slot->key != key)
        return false;
    if (above) { /* the other slot takes the node's place */
        node_id n = above->node;
        TX_ADD_DIRECT(above);
        *above = D_RO(n)->slot[!bit_of(key, D_RO(n)->bit)];
        TX_FREE(n);
    }
    TX_SET(t, size, D_RO(t)->size - 1);
    return true;
}

static uint64_t size(PMEMoid map)
{
    return D_RO(map_of(map))->size;
}

const struct pool_map pool_ctree = {"ctree", create, insert, lookup, remove_key, size};
