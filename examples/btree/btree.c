/*
 * B-tree after Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms", chapter 18, with
 * minimum degree 4.
 *
 * Insert and remove walk down once and never come back up. Before insert enters a full node, it splits
 * the node. Before remove enters a node without an item to spare, it borrows an item from a sibling or
 * merges both. The invariants are numbered in btree.h.
 */
#include "btree.h"

#include "../common/memory.h"

#include <string.h>

/* Nodes have 4 or more children, so no tree of 2^64 keys is deeper. */
enum { DEPTH_MAX = 32 };

static struct btree_node *new_node(pm_container *c, bool leaf)
{
    struct btree_node *node = mem_alloc(c, sizeof *node);
    if (node) {
        node->count = 0;
        node->leaf = leaf;
    }
    return node;
}

/* Index of the first item whose key is not less than `key`. The search goes on in the child of this index. */
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

/* Make room for item `i`, and in an inner node for child `i_child`. */
static void open_gap(struct btree_node *node, uint32_t i, uint32_t i_child)
{
    memmove(&node->items[i + 1], &node->items[i], (node->count - i) * sizeof node->items[0]);
    if (!node->leaf)
        memmove(&node->children[i_child + 1], &node->children[i_child],
                (node->count + 1 - i_child) * sizeof node->children[0]);
    node->count++;
}

/* Drop item `i`, and in an inner node child `i_child`. */
static void close_gap(struct btree_node *node, uint32_t i, uint32_t i_child)
{
    memmove(&node->items[i], &node->items[i + 1], (node->count - i - 1) * sizeof node->items[0]);
    if (!node->leaf)
        memmove(&node->children[i_child], &node->children[i_child + 1],
                (node->count - i_child) * sizeof node->children[0]);
    node->count--;
}

/* Append all items of `from`, beginning with item `first`, and the children around them. */
static void append_tail(struct btree_node *to, const struct btree_node *from, uint32_t first)
{
    uint32_t count = from->count - first;
    memcpy(&to->items[to->count], &from->items[first], count * sizeof to->items[0]);
    if (!to->leaf)
        memcpy(&to->children[to->count], &from->children[first],
               (count + 1) * sizeof to->children[0]);
    to->count += count;
}

struct btree *btree_create(pm_container *c)
{
    struct btree *t = mem_alloc(c, sizeof *t);
    struct btree_node *root = new_node(c, true);
    if (!t || !root) {
        mem_free(c, t);
        mem_free(c, root);
        return NULL;
    }
    *t = (struct btree){.root = root};
    return t;
}

/* Split the full child `i` in two. Its middle item moves up into `parent`, which must have room. */
static bool split_child(pm_container *c, struct btree_node *parent, uint32_t i)
{
    struct btree_node *left = parent->children[i];
    struct btree_node *right = new_node(c, left->leaf);
    if (!right)
        return false;
    append_tail(right, left, BTREE_ITEMS_MIN + 1);
    left->count = BTREE_ITEMS_MIN;

    open_gap(parent, i, i + 1);
    parent->items[i] = left->items[BTREE_ITEMS_MIN];
    parent->children[i + 1] = right;
    return true;
}

/* Split a full root. Only so the tree gets higher. */
static bool split_root(pm_container *c, struct btree *t)
{
    struct btree_node *root = new_node(c, false);
    if (!root)
        return false;
    root->children[0] = t->root;
    if (!split_child(c, root, 0)) {
        mem_free(c, root);
        return false;
    }
    t->root = root;
    return true;
}

int btree_insert(pm_container *c, struct btree *t, uint64_t key, uint64_t value)
{
    if (t->root->count == BTREE_ITEMS_MAX && !split_root(c, t))
        return -1;

    struct btree_node *node = t->root; /* never full */
    uint32_t i;
    while (i = position(node, key), !has_key_at(node, i, key)) {
        if (node->leaf) {
            open_gap(node, i, 0);
            node->items[i] = (struct btree_item){key, value};
            t->size++;
            return 1;
        }
        if (node->children[i]->count < BTREE_ITEMS_MAX)
            node = node->children[i];
        else if (!split_child(c, node, i)) /* after a split, search this node again: it has an item more */
            return -1;
    }
    node->items[i].value = value;
    return 0;
}

bool btree_lookup(const struct btree *t, uint64_t key, uint64_t *value)
{
    const struct btree_node *node = t->root;
    for (;;) {
        uint32_t i = position(node, key);
        if (has_key_at(node, i, key)) {
            if (value)
                *value = node->items[i].value;
            return true;
        }
        if (node->leaf)
            return false;
        node = node->children[i];
    }
}

/* Join children `i` and `i + 1` of `parent`, and the item between them. Both children must be minimal. */
static struct btree_node *merge_children(pm_container *c, struct btree_node *parent, uint32_t i)
{
    struct btree_node *left = parent->children[i];
    struct btree_node *right = parent->children[i + 1];
    left->items[left->count++] = parent->items[i];
    append_tail(left, right, 0);
    close_gap(parent, i, i + 1);
    mem_free(c, right);
    return left;
}

/* Make sure that the child for position `i` has an item to spare, and return this child. */
static struct btree_node *roomy_child(pm_container *c, struct btree_node *parent, uint32_t i)
{
    struct btree_node *child = parent->children[i];
    struct btree_node *left = i > 0 ? parent->children[i - 1] : NULL;
    struct btree_node *right = i < parent->count ? parent->children[i + 1] : NULL;

    if (child->count > BTREE_ITEMS_MIN)
        return child;
    if (left &&
        left->count > BTREE_ITEMS_MIN) { /* the last item of `left` goes up, the parent's comes down */
        open_gap(child, 0, 0);
        child->items[0] = parent->items[i - 1];
        if (!child->leaf)
            child->children[0] = left->children[left->count];
        parent->items[i - 1] = left->items[--left->count];
        return child;
    }
    if (right && right->count > BTREE_ITEMS_MIN) { /* the same from the other side */
        child->items[child->count++] = parent->items[i];
        if (!child->leaf)
            child->children[child->count] = right->children[0];
        parent->items[i] = right->items[0];
        close_gap(right, 0, 0);
        return child;
    }
    return merge_children(c, parent, right ? i : i - 1);
}

int btree_remove(pm_container *c, struct btree *t, uint64_t key)
{
    struct btree_node *node = t->root; /* is the root, or has an item to spare */
    int removed = 0;

    for (;;) {
        uint32_t i = position(node, key);
        bool found = has_key_at(node, i, key);
        if (node->leaf) {
            if (found) {
                close_gap(node, i, 0);
                t->size--;
                removed = 1;
            }
            break;
        }
        if (!found) {
            node = roomy_child(c, node, i);
            continue;
        }
        /* The item is in an inner node. If a child beside it has an item to spare, a neighbour from a leaf
         * below this child replaces the item. Then the loop removes the neighbour from the leaf. If neither
         * child has an item to spare, push the item down. */
        struct btree_node *left = node->children[i];
        struct btree_node *right = node->children[i + 1];
        const struct btree_node *leaf;
        if (left->count > BTREE_ITEMS_MIN) {
            for (leaf = left; !leaf->leaf;)
                leaf = leaf->children[leaf->count];
            node->items[i] = leaf->items[leaf->count - 1];
            key = node->items[i].key;
            node = left;
        } else if (right->count > BTREE_ITEMS_MIN) {
            for (leaf = right; !leaf->leaf;)
                leaf = leaf->children[0];
            node->items[i] = leaf->items[0];
            key = node->items[i].key;
            node = right;
        } else {
            node = merge_children(c, node, i);
        }
    }

    struct btree_node *root = t->root;
    if (!root->count && !root->leaf) { /* its last two children were merged: one level less */
        t->root = root->children[0];
        mem_free(c, root);
    }
    return removed;
}

uint64_t btree_size(const struct btree *t)
{
    return t->size;
}

static int walk_subtree(const struct btree_node *node,
                        int (*visit)(uint64_t key, uint64_t value, void *arg), void *arg)
{
    for (uint32_t i = 0;; i++) {
        int result = node->leaf ? 0 : walk_subtree(node->children[i], visit, arg);
        if (result || i == node->count)
            return result;
        result = visit(node->items[i].key, node->items[i].value, arg);
        if (result)
            return result;
    }
}

int btree_walk(const struct btree *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
               void *arg)
{
    return walk_subtree(t->root, visit, arg);
}

/* The state of a walk by btree_check(), from left to right. */
struct survey {
    const char *offence;
    const struct btree_item *previous; /* the item before, in order; NULL before the first */
    uint64_t items;
    uint64_t items_max;  /* if there are more items, there is a cycle or the size is wrong */
    uint32_t leaf_depth; /* UINT32_MAX before the first leaf */
};

/* Check an item. A walk in tree order proves invariant 1 if items ascend over the whole walk. */
static void survey_node(const struct btree_node *node, uint32_t depth, struct survey *s)
{
    if (depth > DEPTH_MAX)
        s->offence = "btree: deeper than any balanced tree";
    else if (!node)
        s->offence = "btree: missing child";
    else if (node->leaf > 1)
        s->offence = "btree: node neither leaf nor inner node";
    else if (node->count > BTREE_ITEMS_MAX)
        s->offence = "btree: overfull node";
    else if (node->count < (depth ? BTREE_ITEMS_MIN : !node->leaf))
        s->offence = "btree: underfull node";
    else if (node->leaf && s->leaf_depth != UINT32_MAX && s->leaf_depth != depth)
        s->offence = "btree: leaves of different depth";
    if (s->offence)
        return;
    if (node->leaf)
        s->leaf_depth = depth;

    for (uint32_t i = 0;; i++) {
        if (!node->leaf)
            survey_node(node->children[i], depth + 1, s);
        if (s->offence || i == node->count)
            return;
        if (s->previous && s->previous->key >= node->items[i].key)
            s->offence = "btree: keys out of order";
        else if (++s->items > s->items_max)
            s->offence = "btree: more items than the size says";
        if (s->offence)
            return;
        s->previous = &node->items[i];
    }
}

const char *btree_check(const struct btree *t)
{
    struct survey s = {.items_max = t->size, .leaf_depth = UINT32_MAX};
    survey_node(t->root, 0, &s);
    if (!s.offence && s.items != t->size)
        s.offence = "btree: fewer items than the size says";
    return s.offence;
}

static void free_subtree(pm_container *c, struct btree_node *node)
{
    if (!node->leaf)
        for (uint32_t i = 0; i <= node->count; i++)
            free_subtree(c, node->children[i]);
    mem_free(c, node);
}

void btree_destroy(pm_container *c, struct btree *t)
{
    if (!t)
        return;
    free_subtree(c, t->root);
    mem_free(c, t);
}
