/*
 * Chained hash map. The walk along a chain holds the *link* to a node, not the node. So adding or
 * removing the first node of a chain is no special case. The invariants are numbered in hashmap.h.
 */
#include "hashmap.h"

#include "../common/memory.h"

#include <string.h>

/* Bucket of a key. The finaliser of MurmurHash3 spreads close keys over all bits. */
static uint64_t bucket_of(uint64_t key, uint64_t bucket_count)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccd;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53;
    key ^= key >> 33;
    return key & (bucket_count - 1);
}

static struct hashmap_node **new_buckets(pm_container *c, uint64_t count)
{
    struct hashmap_node **buckets = mem_alloc(c, count * sizeof *buckets);
    if (buckets)
        memset(buckets, 0, count * sizeof *buckets);
    return buckets;
}

/* The link to the node of `key`. If there is no such node, the link that is NULL at the end of the chain. */
static struct hashmap_node **find_link(const struct hashmap *t, uint64_t key)
{
    struct hashmap_node **link = &t->buckets[bucket_of(key, t->bucket_count)];
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

struct hashmap *hashmap_create(pm_container *c)
{
    struct hashmap *t = mem_alloc(c, sizeof *t);
    struct hashmap_node **buckets = new_buckets(c, HASHMAP_BUCKETS_MIN);
    if (!t || !buckets) {
        mem_free(c, t);
        mem_free(c, buckets);
        return NULL;
    }
    *t = (struct hashmap){.buckets = buckets, .bucket_count = HASHMAP_BUCKETS_MIN};
    return t;
}

/* Double the buckets and relink all nodes. If there is no memory for the buckets, do nothing. */
static void grow(pm_container *c, struct hashmap *t)
{
    uint64_t count = 2 * t->bucket_count;
    struct hashmap_node **buckets = new_buckets(c, count);
    if (!buckets)
        return;
    for (uint64_t i = 0; i < t->bucket_count; i++)
        for (struct hashmap_node *n = t->buckets[i], *next; n; n = next) {
            struct hashmap_node **head = &buckets[bucket_of(n->key, count)];
            next = n->next;
            n->next = *head;
            *head = n;
        }
    mem_free(c, t->buckets);
    t->buckets = buckets;
    t->bucket_count = count;
}

int hashmap_insert(pm_container *c, struct hashmap *t, uint64_t key, uint64_t value)
{
    struct hashmap_node *found = *find_link(t, key);
    if (found) {
        found->value = value;
        return 0;
    }

    struct hashmap_node *n = mem_alloc(c, sizeof *n);
    if (!n)
        return -1;
    if (t->size >= t->bucket_count)
        grow(c, t);
    struct hashmap_node **head = &t->buckets[bucket_of(key, t->bucket_count)];
    *n = (struct hashmap_node){.key = key, .value = value, .next = *head};
    *head = n;
    t->size++;
    return 1;
}

bool hashmap_lookup(const struct hashmap *t, uint64_t key, uint64_t *value)
{
    const struct hashmap_node *n = *find_link(t, key);
    if (n && value)
        *value = n->value;
    return n;
}

int hashmap_remove(pm_container *c, struct hashmap *t, uint64_t key)
{
    struct hashmap_node **link = find_link(t, key);
    struct hashmap_node *n = *link;
    if (!n)
        return 0;
    *link = n->next;
    mem_free(c, n);
    t->size--;
    return 1;
}

uint64_t hashmap_size(const struct hashmap *t)
{
    return t->size;
}

int hashmap_walk(const struct hashmap *t, int (*visit)(uint64_t key, uint64_t value, void *arg),
                 void *arg)
{
    for (uint64_t i = 0; i < t->bucket_count; i++)
        for (const struct hashmap_node *n = t->buckets[i]; n; n = n->next) {
            int result = visit(n->key, n->value, arg);
            if (result)
                return result;
        }
    return 0;
}

const char *hashmap_check(const struct hashmap *t)
{
    uint64_t count = t->bucket_count;
    if (count < HASHMAP_BUCKETS_MIN || (count & (count - 1)))
        return "hashmap: number of buckets is no power of two, or too small";

    uint64_t nodes = 0;
    for (uint64_t i = 0; i < count; i++)
        for (const struct hashmap_node *n = t->buckets[i]; n; n = n->next) {
            if (++nodes > t->size) /* or a cycle */
                return "hashmap: more nodes than the size says";
            if (bucket_of(n->key, count) != i)
                return "hashmap: node in the chain of another bucket";
            /* The same key twice is in the same chain, and chains are short. */
            for (const struct hashmap_node *m = t->buckets[i]; m != n; m = m->next)
                if (m->key == n->key)
                    return "hashmap: key twice in a chain";
        }
    return nodes == t->size ? NULL : "hashmap: fewer nodes than the size says";
}

void hashmap_destroy(pm_container *c, struct hashmap *t)
{
    if (!t)
        return;
    for (uint64_t i = 0; i < t->bucket_count; i++)
        for (struct hashmap_node *n = t->buckets[i], *next; n; n = next) {
            next = n->next;
            mem_free(c, n);
        }
    mem_free(c, t->buckets);
    mem_free(c, t);
}
