/*
 * Skip list after Pugh, "Skip Lists: A Probabilistic Alternative to Balanced Trees" (CACM 1990).
 * A search starts on the top level, goes right while the next key is less, and then down. The paper keeps
 * an array of the nodes before the key. This code keeps a link for each level instead, to the first node
 * not before the key. So the head needs no node. The invariants are numbered in skiplist.h.
 */
#include "skiplist.h"

#include "../common/memory.h"

/* For each level, find the link (in the head or in a node) to the first node with a key >= `key`. */
static void find_links(struct skiplist *t, uint64_t key,
                       struct skiplist_node **link[static SKIPLIST_LEVELS])
{
    struct skiplist_node **links = t->first; /* the links of the current node, or of the head */
    for (int level = SKIPLIST_LEVELS - 1; level >= 0; level--) {
        while (links[level] && links[level]->key < key)
            links = links[level]->next;
        link[level] = &links[level];
    }
}

/* Draw a height: h with probability 3/4 * (1/4)^(h - 1). The greatest height takes the rest. */
static int draw_height(uint64_t *random)
{
    uint64_t x = *random; /* xorshift64, Marsaglia 2003 */
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *random = x;

    int height = 1;
    for (x >>= 32; height < SKIPLIST_LEVELS && x % 4 == 0; x /= 4)
        height++;
    return height;
}

struct skiplist *skiplist_create(pm_container *c)
{
    struct skiplist *t = mem_alloc(c, sizeof *t);
    if (t)
        *t = (struct skiplist){.random = 0x9e3779b97f4a7c15};
    return t;
}

int skiplist_insert(pm_container *c, struct skiplist *t, uint64_t key, uint64_t value)
{
    struct skiplist_node **link[SKIPLIST_LEVELS];
    find_links(t, key, link);
    if (*link[0] && (*link[0])->key == key) {
        (*link[0])->value = value;
        return 0;
    }

    uint64_t random = t->random;
    int height = draw_height(&random);
    struct skiplist_node *n = mem_alloc(c, sizeof *n + (size_t)height * sizeof n->next[0]);
    if (!n)
        return -1;
    t->random = random;
    n->key = key;
    n->value = value;
    for (int level = 0; level < height; level++) {
        n->next[level] = *link[level];
        *link[level] = n;
    }
    t->size++;
    return 1;
}

bool skiplist_lookup(const struct skiplist *t, uint64_t key, uint64_t *value)
{
    struct skiplist_node *const *links = t->first;
    for (int level = SKIPLIST_LEVELS - 1; level >= 0; level--)
        while (links[level] && links[level]->key < key)
            links = links[level]->next;

    const struct skiplist_node *n = links[0];
    if (!n || n->key != key)
        return false;
    if (value)
        *value = n->value;
    return true;
}

int skiplist_remove(pm_container *c, struct skiplist *t, uint64_t key)
{
    struct skiplist_node **link[SKIPLIST_LEVELS];
    find_links(t, key, link);
    struct skiplist_node *n = *link[0];
    if (!n || n->key != key)
        return 0;
    /* By invariant 2 the node is in the lowest levels. So the loop does not need its height. */
    for (int level = 0; level < SKIPLIST_LEVELS && *link[level] == n; level++)
        *link[level] = n->next[level];
    mem_free(c, n);
    t->size--;
    return 1;
}

uint64_t skiplist_size(const struct skiplist *t)
{
    return t->size;
}

int skiplist_walk(const struct skiplist *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
                  void *arg)
{
    for (const struct skiplist_node *n = t->first[0]; n; n = n->next[0]) {
        int result = visit(n->key, n->value, arg);
        if (result)
            return result;
    }
    return 0;
}

const char *skiplist_check(const struct skiplist *t)
{
    if (!t->random)
        return "skiplist: generator in its dead state";

    uint64_t nodes = 0;
    for (const struct skiplist_node *n = t->first[0]; n; n = n->next[0]) {
        if (++nodes > t->size) /* or a cycle */
            return "skiplist: more nodes than the size says";
        if (n->next[0] && n->next[0]->key <= n->key)
            return "skiplist: keys out of order";
    }
    if (nodes != t->size)
        return "skiplist: fewer nodes than the size says";

    /* A subsequence of an ascending list is ascending. So if invariant 2 holds for a level, 1 does, too. */
    for (int level = 1; level < SKIPLIST_LEVELS; level++) {
        const struct skiplist_node *below = t->first[level - 1];
        for (const struct skiplist_node *n = t->first[level]; n; n = n->next[level]) {
            while (below && below != n)
                below = below->next[level - 1];
            if (!below)
                return "skiplist: node of a level is missing, or misplaced, in the level below";
            below = below->next[level - 1];
        }
    }
    return NULL;
}

void skiplist_destroy(pm_container *c, struct skiplist *t)
{
    if (!t)
        return;
    for (struct skiplist_node *n = t->first[0], *next; n; n = next) {
        next = n->next[0];
        mem_free(c, n);
    }
    mem_free(c, t);
}
