/*
 * Red-black tree on libpmemobj; examples/rbtree tells how it works. A node has 72 bytes. A rotation
 * changes two links of the nodes that it turns, so it announces these two whole; their colours,
 * which change with it, are stored after it and need no announcement of their own.
 */
#include "pmemobj/pool_map.h"

enum { LEFT, RIGHT };
enum colour { RED, BLACK };

struct rbtree_node {
    uint64_t key;
    uint64_t value;
    TOID(struct rbtree_node) child[2];
    TOID(struct rbtree_node) parent;
    enum colour colour;
};

struct rbtree {
    TOID(struct rbtree_node) root;
    uint64_t size;
};

typedef TOID(struct rbtree) tree_id;
typedef TOID(struct rbtree_node) node_id;

static tree_id map_of(PMEMoid map)
{
    return (tree_id){map};
}

static bool is_red(node_id n)
{
    return !TOID_IS_NULL(n) && D_RO(n)->colour == RED;
}

static node_id find(tree_id t, uint64_t key)
{
    node_id n = D_RO(t)->root;
    while (!TOID_IS_NULL(n)) {
        const struct rbtree_node *node = D_RO(n);
        if (node->key == key)
            break;
        n = node->child[key > node->key];
    }
    return n;
}

static node_id leftmost(node_id n)
{
    while (!TOID_IS_NULL(D_RO(n)->child[LEFT]))
        n = D_RO(n)->child[LEFT];
    return n;
}

/* Hang `successor`, which may be null, where `old` hangs now. */
static void transplant(tree_id t, node_id old, node_id successor)
{
    node_id parent = D_RO(old)->parent;
    if (TOID_IS_NULL(parent))
        TX_SET(t, root, successor);
    else
        TX_SET(parent, child[TOID_EQUALS(old, D_RO(parent)->child[RIGHT])], successor);
    if (!TOID_IS_NULL(successor))
        TX_SET(successor, parent, parent);
}

/* Turn `top` down to `side`; its child of the other side rises. */
static void rotate(tree_id t, node_id top, int side)
{
    node_id riser = D_RO(top)->child[!side];
    node_id between = D_RO(riser)->child[side];

    TX_ADD(top);
    TX_ADD(riser);
    transplant(t, top, riser);
    D_RW(riser)->child[side] = top;
    D_RW(top)->parent = riser;
    D_RW(top)->child[!side] = between;
    if (!TOID_IS_NULL(between))
        TX_SET(between, parent, top);
}

static PMEMoid create(void)
{
    return TX_ZNEW(struct rbtree).oid;
}

static void insert_fixup(tree_id t, node_id n)
{
    node_id parent;
    while (parent = D_RO(n)->parent, is_red(parent)) {
        node_id grand = D_RO(parent)->parent;
        int side = TOID_EQUALS(parent, D_RO(grand)->child[RIGHT]);
        node_id uncle = D_RO(grand)->child[!side];

        if (is_red(uncle)) {
            TX_SET(parent, colour, BLACK);
            TX_SET(uncle, colour, BLACK);
            TX_SET(grand, colour, RED);
            n = grand;
            continue;
        }
        if (TOID_EQUALS(n, D_RO(parent)->child[!side])) {
            rotate(t, parent, side);
            n = parent;
            parent = D_RO(n)->parent;
        }
        rotate(t, grand, !side);
        D_RW(parent)->colour = BLACK;
        D_RW(grand)->colour = RED;
    }
    if (TOID_IS_NULL(parent))
        TX_SET(n, colour, BLACK);
}

static bool insert(PMEMoid map, uint64_t key, uint64_t value)
{
    tree_id t = map_of(map);
    node_id parent = TOID_NULL(struct rbtree_node);
    node_id *link = &D_RW(t)->root;
    while (!TOID_IS_NULL(*link)) {
        parent = *link;
        struct rbtree_node *node = D_RW(parent);
        if (node->key == key) {
            TX_SET(parent, value, value);
            return false;
        }
        link = &node->child[key > node->key];
    }

    node_id n = TX_NEW(struct rbtree_node);
    *D_RW(n) = (struct rbtree_node){.key = key, .value = value, .parent = parent, .colour = RED};
    if (is_red(parent))
        TX_ADD(parent); /* the fix-up will change more of it */
    else
        TX_ADD_DIRECT(link);
    *link = n;
    TX_SET(t, size, D_RO(t)->size + 1);
    insert_fixup(t, n);
    return true;
}

static bool lookup(PMEMoid map, uint64_t key, uint64_t *value)
{
    node_id n = find(map_of(map), key);
    if (TOID_IS_NULL(n))
        return false;
    *value = D_RO(n)->value;
    return true;
}

static void remove_fixup(tree_id t, node_id n, node_id parent)
{
    while (!TOID_IS_NULL(parent) && !is_red(n)) {
        int side = TOID_EQUALS(n, D_RO(parent)->child[RIGHT]);
        node_id sibling = D_RO(parent)->child[!side];

        if (is_red(sibling)) {
            rotate(t, parent, side);
            D_RW(sibling)->colour = BLACK;
            D_RW(parent)->colour = RED;
            sibling = D_RO(parent)->child[!side];
        }
        node_id inner = D_RO(sibling)->child[side], outer = D_RO(sibling)->child[!side];
        if (!is_red(inner) && !is_red(outer)) {
            TX_SET(sibling, colour, RED);
            n = parent;
            parent = D_RO(n)->parent;
            continue;
        }
        if (!is_red(outer)) {
            rotate(t, sibling, !side);
            D_RW(inner)->colour = BLACK;
            D_RW(sibling)->colour = RED;
            outer = sibling;
            sibling = inner;
        }
        rotate(t, parent, side);
        D_RW(sibling)->colour = D_RO(parent)->colour;
        D_RW(parent)->colour = BLACK;
        TX_SET(outer, colour, BLACK);
        return;
    }
    if (is_red(n))
        TX_SET(n, colour, BLACK);
}

static bool remove_key(PMEMoid map, uint64_t key)
{
    tree_id t = map_of(map);
    node_id victim_id = find(t, key);
    if (TOID_IS_NULL(victim_id))
        return false;

    const struct rbtree_node *victim = D_RO(victim_id);
    node_id riser, parent;
    enum colour colour_lost = victim->colour;

    if (TOID_IS_NULL(victim->child[LEFT]) || TOID_IS_NULL(victim->child[RIGHT])) {
        riser = victim->child[TOID_IS_NULL(victim->child[LEFT]) ? RIGHT : LEFT];
        parent = victim->parent;
        transplant(t, victim_id, riser);
    } else {
        node_id next_id = leftmost(victim->child[RIGHT]);
        struct rbtree_node *next = D_RW(next_id);
        colour_lost = next->colour;
        riser = next->child[RIGHT];
        parent = next->parent;
        TX_ADD(next_id);
        if (TOID_EQUALS(parent, victim_id)) {
            parent = next_id;
        } else {
            transplant(t, next_id, riser);
            next->child[RIGHT] = victim->child[RIGHT];
            TX_SET(next->child[RIGHT], parent, next_id);
        }
        transplant(t, victim_id, next_id);
        next->child[LEFT] = victim->child[LEFT];
        TX_SET(next->child[LEFT], parent, next_id);
        next->colour = victim->colour;
    }
    if (colour_lost == BLACK)
        remove_fixup(t, riser, parent);
    TX_FREE(victim_id);
    TX_SET(t, size, D_RO(t)->size - 1);
    return true;
}

static uint64_t size(PMEMoid map)
{
    return D_RO(map_of(map))->size;
}

const struct pool_map pool_rbtree = {"rbtree", create, insert, lookup, remove_key, size};
