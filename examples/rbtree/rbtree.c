/*
 * Red-black tree after Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms", chapter 13.
 *
 * NULL replaces the book's sentinel. So a fix-up gets the parent as an argument, since the node may be
 * missing. Left and right are indices: `side` and `!side` replace the book's "same with right and left
 * exchanged". The invariants are numbered in rbtree.h.
 */
#include "rbtree.h"

#include "../common/memory.h"

enum { LEFT, RIGHT };

/* If invariants 3 and 4 hold, a tree of this depth has more than 2^64 keys. */
enum { DEPTH_MAX = 128 };

/* A missing child counts as black. */
static bool is_red(const struct rbtree_node *n)
{
    return n && n->colour == RBTREE_RED;
}

static struct rbtree_node *find(const struct rbtree *t, uint64_t key)
{
    struct rbtree_node *n = t->root;
    while (n && n->key != key)
        n = n->child[key > n->key];
    return n;
}

static struct rbtree_node *leftmost(struct rbtree_node *n)
{
    while (n->child[LEFT])
        n = n->child[LEFT];
    return n;
}

/* Put `successor`, which may be NULL, into the place of `old`. */
static void transplant(struct rbtree *t, struct rbtree_node *old, struct rbtree_node *successor)
{
    if (!old->parent)
        t->root = successor;
    else
        old->parent->child[old == old->parent->child[RIGHT]] = successor;
    if (successor)
        successor->parent = old->parent;
}

/*
 * Rotate: `top` goes down to `side`, and its child of the other side rises. The order stays the same.
 *
 *       top                 riser
 *      /   \     LEFT      /     \
 *     a   riser  ---->   top      c
 *         /   \         /   \
 *        b     c       a     b
 */
static void rotate(struct rbtree *t, struct rbtree_node *top, int side)
{
    struct rbtree_node *riser = top->child[!side];
    struct rbtree_node *between = riser->child[side];

    transplant(t, top, riser);
    riser->child[side] = top;
    top->parent = riser;
    top->child[!side] = between;
    if (between)
        between->parent = top;
}

struct rbtree *rbtree_create(pm_container *c)
{
    struct rbtree *t = mem_alloc(c, sizeof *t);
    if (t)
        *t = (struct rbtree){0};
    return t;
}

/* Repair the tree after an insert. `n` is red. At most invariants 2 and 3 are broken, and only between `n`
 * and its parent. */
static void insert_fixup(struct rbtree *t, struct rbtree_node *n)
{
    while (is_red(n->parent)) {
        struct rbtree_node *parent = n->parent;
        struct rbtree_node *grand = parent->parent; /* there is one: a red parent is not the root */
        int side = parent == grand->child[RIGHT];
        struct rbtree_node *uncle = grand->child[!side];

        if (is_red(uncle)) { /* push the red one level up; the trouble moves to `grand` */
            parent->colour = RBTREE_BLACK;
            uncle->colour = RBTREE_BLACK;
            grand->colour = RBTREE_RED;
            n = grand;
            continue;
        }
        if (n == parent->child[!side]) { /* make an inner grandchild an outer one */
            rotate(t, parent, side);
            n = parent;
            parent = n->parent;
        }
        parent->colour = RBTREE_BLACK;
        grand->colour = RBTREE_RED;
        rotate(t, grand, !side);
    }
    if (!n->parent)
        n->colour = RBTREE_BLACK;
}

int rbtree_insert(pm_container *c, struct rbtree *t, uint64_t key, uint64_t value)
{
    struct rbtree_node *parent = NULL;
    struct rbtree_node **link = &t->root;
    while (*link) {
        parent = *link;
        if (parent->key == key) {
            parent->value = value;
            return 0;
        }
        link = &parent->child[key > parent->key];
    }

    struct rbtree_node *n = mem_alloc(c, sizeof *n);
    if (!n)
        return -1;
    *n = (struct rbtree_node){.key = key, .value = value, .parent = parent, .colour = RBTREE_RED};
    *link = n;
    t->size++;
    insert_fixup(t, n);
    return 1;
}

bool rbtree_lookup(const struct rbtree *t, uint64_t key, uint64_t *value)
{
    const struct rbtree_node *n = find(t, key);
    if (n && value)
        *value = n->value;
    return n;
}

/*
 * Repair the tree after a removal. The paths through `n`, a possibly missing child of `parent`, have one
 * black node too few. A node that lacks a black node has a sibling: the paths through the sibling have
 * this black node.
 */
static void remove_fixup(struct rbtree *t, struct rbtree_node *n, struct rbtree_node *parent)
{
    while (parent && !is_red(n)) {
        int side = n == parent->child[RIGHT];
        struct rbtree_node *sibling = parent->child[!side];

        if (is_red(sibling)) { /* get a black sibling */
            sibling->colour = RBTREE_BLACK;
            parent->colour = RBTREE_RED;
            rotate(t, parent, side);
            sibling = parent->child[!side];
        }
        if (!is_red(sibling->child[LEFT]) && !is_red(sibling->child[RIGHT])) {
            sibling->colour = RBTREE_RED; /* now both sides lack one: go on one level up */
            n = parent;
            parent = n->parent;
            continue;
        }
        if (!is_red(sibling->child[!side])) { /* make the inner red nephew an outer one */
            sibling->child[side]->colour = RBTREE_BLACK;
            sibling->colour = RBTREE_RED;
            rotate(t, sibling, !side);
            sibling = parent->child[!side];
        }
        sibling->colour = parent->colour;
        parent->colour = RBTREE_BLACK;
        sibling->child[!side]->colour = RBTREE_BLACK;
        rotate(t, parent, side);
        return;
    }
    if (is_red(n))
        n->colour = RBTREE_BLACK;
}

int rbtree_remove(pm_container *c, struct rbtree *t, uint64_t key)
{
    struct rbtree_node *victim = find(t, key);
    if (!victim)
        return 0;

    struct rbtree_node *riser;                       /* moves into the hole; may be NULL */
    struct rbtree_node *parent;                      /* of the riser, after the riser has moved */
    enum rbtree_colour colour_lost = victim->colour; /* the paths through the riser lose this colour */

    if (!victim->child[LEFT] || !victim->child[RIGHT]) {
        riser = victim->child[victim->child[LEFT] ? LEFT : RIGHT];
        parent = victim->parent;
        transplant(t, victim, riser);
    } else { /* the next greater node, which has no left child, takes the victim's place */
        struct rbtree_node *next = leftmost(victim->child[RIGHT]);
        colour_lost = next->colour;
        riser = next->child[RIGHT];
        if (next->parent == victim) {
            parent = next;
        } else {
            parent = next->parent;
            transplant(t, next, riser);
            next->child[RIGHT] = victim->child[RIGHT];
            next->child[RIGHT]->parent = next;
        }
        transplant(t, victim, next);
        next->child[LEFT] = victim->child[LEFT];
        next->child[LEFT]->parent = next;
        next->colour = victim->colour;
    }
    if (colour_lost == RBTREE_BLACK)
        remove_fixup(t, riser, parent);
    mem_free(c, victim);
    t->size--;
    return 1;
}

uint64_t rbtree_size(const struct rbtree *t)
{
    return t->size;
}

int rbtree_walk(const struct rbtree *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
                void *arg)
{
    const struct rbtree_node *n = t->root ? leftmost(t->root) : NULL;
    while (n) {
        int result = visit(n->key, n->value, arg);
        if (result)
            return result;
        if (n->child[RIGHT]) {
            n = leftmost(n->child[RIGHT]);
        } else { /* up to the first ancestor whose left subtree has the node */
            const struct rbtree_node *child = n;
            n = n->parent;
            while (n && child == n->child[RIGHT]) {
                child = n;
                n = n->parent;
            }
        }
    }
    return 0;
}

/* The state of a walk by rbtree_check(), from left to right. */
struct survey {
    const char *offence;
    const struct rbtree_node *previous; /* the node before, in order; NULL before the first */
    uint64_t nodes;
    uint64_t nodes_max; /* if there are more nodes, there is a cycle or the size is wrong */
};

/* The number of black nodes on each path down from `n`. Returns 0 and sets the offence if the numbers differ,
 * or if anything else is wrong. */
static int black_height(const struct rbtree_node *n, const struct rbtree_node *parent, int depth,
                        struct survey *s)
{
    if (!n)
        return 1;
    if (depth > DEPTH_MAX)
        s->offence = "rbtree: deeper than any balanced tree";
    else if (n->parent != parent)
        s->offence = "rbtree: parent pointer does not name the parent";
    else if (n->colour != RBTREE_RED && n->colour != RBTREE_BLACK)
        s->offence = "rbtree: node neither red nor black";
    else if (is_red(n) && is_red(parent))
        s->offence = "rbtree: red node with a red child";
    if (s->offence)
        return 0;

    int left = black_height(n->child[LEFT], n, depth + 1, s);
    if (s->offence)
        return 0;
    if (s->previous && s->previous->key >= n->key)
        s->offence = "rbtree: keys out of order";
    else if (++s->nodes > s->nodes_max)
        s->offence = "rbtree: more nodes than the size says";
    if (s->offence)
        return 0;
    s->previous = n;

    int right = black_height(n->child[RIGHT], n, depth + 1, s);
    if (s->offence)
        return 0;
    if (left != right) {
        s->offence = "rbtree: black heights differ";
        return 0;
    }
    return left + (n->colour == RBTREE_BLACK);
}

const char *rbtree_check(const struct rbtree *t)
{
    if (is_red(t->root))
        return "rbtree: red root";
    struct survey s = {.nodes_max = t->size};
    black_height(t->root, NULL, 0, &s);
    if (!s.offence && s.nodes != t->size)
        s.offence = "rbtree: fewer nodes than the size says";
    return s.offence;
}

static void free_subtree(pm_container *c, struct rbtree_node *n)
{
    if (!n)
        return;
    free_subtree(c, n->child[LEFT]);
    free_subtree(c, n->child[RIGHT]);
    mem_free(c, n);
}

void rbtree_destroy(pm_container *c, struct rbtree *t)
{
    if (!t)
        return;
    free_subtree(c, t->root);
    mem_free(c, t);
}
