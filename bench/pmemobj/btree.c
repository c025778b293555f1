/*
 * B-tree of order 8 on libpmemobj; examples/btree tells how it works. A node has 248 bytes, half of
 * them children, which come last: what changes in a leaf is announced as one range without them.
 */
#include "pmemobj/pool_map.h"

#include <string.h>

enum { ORDER = 8, ITEMS_MAX = ORDER - 1, ITEMS_MIN = ORDER / 2 - 1 };

struct btree_item {
    uint64_t key;
    uint64_t value;
};

struct btree_node {
    uint32_t count;
    uint32_t leaf;
    struct btree_item items[ITEMS_MAX];
    TOID(struct btree_node) children[ORDER];
};

struct btree {
    TOID(struct btree_node) root;
    uint64_t size;
};

typedef TOID(struct btree_node) node_id;

static TOID(struct btree) map_of(PMEMoid map)
{
    return (TOID(struct btree)){map};
}

static node_id new_node(bool leaf)
{
    node_id n = TX_NEW(struct btree_node);
    D_RW(n)->count = 0;
    D_RW(n)->leaf = leaf;
    return n;
}

/* Announce that the items, and in an inner node the children, will change. */
static struct btree_node *change(node_id n)
{
    struct btree_node *node = D_RW(n);
    pmemobj_tx_add_range(n.oid, 0,
                         node->leaf ? offsetof(struct btree_node, children) : sizeof *node);
    return node;
}

/* Announce that one item will change. */
static struct btree_item *change_item(node_id n, uint32_t i)
{
    struct btree_item *item = &D_RW(n)->items[i];
    TX_ADD_DIRECT(item);
    return item;
}

static uint32_t position(const struct btree_node *node, uint64_t key)
{
    uint32_t i = 0;
    while (i < node->count && node->items[i].key < key)
        i++;
    return i;
}

static bool has_key_at(const struct btree_node *node, uint32_t i, uint64_t key)
{
    return i < node->count && node->items[i].key == key;
}

/* The next three change nodes that have been announced. */

static void open_gap(struct btree_node *node, uint32_t i, uint32_t i_child)
{
    memmove(&node->items[i + 1], &node->items[i], (node->count - i) * sizeof node->items[0]);
    if (!node->leaf)
        memmove(&node->children[i_child + 1], &node->children[i_child],
                (node->count + 1 - i_child) * sizeof node->children[0]);
    node->count++;
}

static void close_gap(struct btree_node *node, uint32_t i, uint32_t i_child)
{
    memmove(&node->items[i], &node->items[i + 1], (node->count - i - 1) * sizeof node->items[0]);
    if (!node->leaf)
        memmove(&node->children[i_child], &node->children[i_child + 1],
                (node->count - i_child) * sizeof node->children[0]);
    node->count--;
}

static void append_tail(struct btree_node *to, const struct btree_node *from, uint32_t first)
{
    uint32_t count = from->count - first;
    memcpy(&to->items[to->count], &from->items[first], count * sizeof to->items[0]);
    if (!to->leaf)
        memcpy(&to->children[to->count], &from->children[first],
               (count + 1) * sizeof to->children[0]);
    to->count += count;
}

static PMEMoid create(void)
{
    TOID(struct btree) t = TX_NEW(struct btree);
    *D_RW(t) = (struct btree){.root = new_node(true)};
    return t.oid;
}

static void split_child(node_id parent_id, uint32_t i)
{
    struct btree_node *parent = change(parent_id);
    struct btree_node *left = D_RW(parent->children[i]);
    node_id right = new_node(left->leaf);
    append_tail(D_RW(right), left, ITEMS_MIN + 1);
    TX_SET(parent->children[i], count, ITEMS_MIN);

    open_gap(parent, i, i + 1);
    parent->items[i] = left->items[ITEMS_MIN];
    parent->children[i + 1] = right;
}

static bool insert(PMEMoid map, uint64_t key, uint64_t value)
{
    TOID(struct btree) t = map_of(map);
    if (D_RO(D_RO(t)->root)->count == ITEMS_MAX) {
        node_id root = new_node(false);
        D_RW(root)->children[0] = D_RO(t)->root;
        split_child(root, 0);
        TX_SET(t, root, root);
    }

    node_id n = D_RO(t)->root;
    for (;;) {
        const struct btree_node *node = D_RO(n);
        uint32_t i = position(node, key);
        if (has_key_at(node, i, key)) {
            change_item(n, i)->value = value;
            return false;
        }
        if (node->leaf) {
            struct btree_node *leaf = change(n);
            open_gap(leaf, i, 0);
            leaf->items[i] = (struct btree_item){key, value};
            TX_SET(t, size, D_RO(t)->size + 1);
            return true;
        }
        if (D_RO(node->children[i])->count < ITEMS_MAX)
            n = node->children[i];
        else
            split_child(n, i);
    }
}

static bool lookup(PMEMoid map, uint64_t key, uint64_t *value)
{
    const struct btree_node *node = D_RO(D_RO(map_of(map))->root);
    for (;;) {
        uint32_t i = position(node, key);
        if (has_key_at(node, i, key)) {
            *value = node->items[i].value;
            return true;
        }
        if (node->leaf)
            return false;
        node = D_RO(node->children[i]);
    }
}

static node_id merge_children(node_id parent_id, uint32_t i)
{
    struct btree_node *parent = change(parent_id);
    node_id left_id = parent->children[i], right_id = parent->children[i + 1];
    struct btree_node *left = change(left_id);
    left->items[left->count++] = parent->items[i];
    append_tail(left, D_RO(right_id), 0);
    close_gap(parent, i, i + 1);
    TX_FREE(right_id);
    return left_id;
}

static node_id roomy_child(node_id parent_id, uint32_t i)
{
    const struct btree_node *parent = D_RO(parent_id);
    node_id child_id = parent->children[i];
    if (D_RO(child_id)->count > ITEMS_MIN)
        return child_id;

    if (i > 0 && D_RO(parent->children[i - 1])->count > ITEMS_MIN) {
        node_id left_id = parent->children[i - 1];
        struct btree_node *child = change(child_id), *left = D_RW(left_id);
        struct btree_item *between = change_item(parent_id, i - 1);
        open_gap(child, 0, 0);
        child->items[0] = *between;
        if (!child->leaf)
            child->children[0] = left->children[left->count];
        *between = left->items[left->count - 1];
        TX_SET(left_id, count, left->count - 1);
        return child_id;
    }
    if (i < parent->count && D_RO(parent->children[i + 1])->count > ITEMS_MIN) {
        struct btree_node *child = change(child_id), *right = change(parent->children[i + 1]);
        struct btree_item *between = change_item(parent_id, i);
        child->items[child->count++] = *between;
        if (!child->leaf)
            child->children[child->count] = right->children[0];
        *between = right->items[0];
        close_gap(right, 0, 0);
        return child_id;
    }
    return merge_children(parent_id, i < parent->count ? i : i - 1);
}

static bool remove_key(PMEMoid map, uint64_t key)
{
    TOID(struct btree) t = map_of(map);
    node_id n = D_RO(t)->root;
    bool removed = false;

    for (;;) {
        const struct btree_node *node = D_RO(n);
        uint32_t i = position(node, key);
        bool found = has_key_at(node, i, key);
        if (node->leaf) {
            if (found) {
                close_gap(change(n), i, 0);
                TX_SET(t, size, D_RO(t)->size - 1);
                removed = true;
            }
            break;
        }
        if (!found) {
            n = roomy_child(n, i);
            continue;
        }
        node_id left = node->children[i], right = node->children[i + 1];
        const struct btree_node *leaf;
        if (D_RO(left)->count > ITEMS_MIN) {
            for (leaf = D_RO(left); !leaf->leaf;)
                leaf = D_RO(leaf->children[leaf->count]);
            *change_item(n, i) = leaf->items[leaf->count - 1];
            key = node->items[i].key;
            n = left;
        } else if (D_RO(right)->count > ITEMS_MIN) {
            for (leaf = D_RO(right); !leaf->leaf;)
                leaf = D_RO(leaf->children[0]);
            *change_item(n, i) = leaf->items[0];
            key = node->items[i].key;
            n = right;
        } else {
            n = merge_children(n, i);
        }
    }

    node_id root = D_RO(t)->root;
    if (!D_RO(root)->count && !D_RO(root)->leaf) {
        TX_SET(t, root, D_RO(root)->children[0]);
        TX_FREE(root);
    }
    return removed;
}

static uint64_t size(PMEMoid map)
{
    return D_RO(map_of(map))->size;
}

const struct pool_map pool_btree = {"btree", create, insert, lookup, remove_key, size};
