/*
 * Two hash maps on libpmemobj with a bucket for each pair, as METRADB has it, and the value in the
 * node: one object a pair, which is what is cheapest here.
 *
 *   hash map tx       chains; each change is a transaction, which announces the link that it changes
 *   hash map atomic   libpmemobj's atomic lists: no transactions at all. A replacement is a new pair
 *                     before the old one, which is then removed: two steps, and after a crash between
 *                     them the old pair is still there, behind the new one
 *
 * Neither counts its pairs, which saves them a store that METRADB does.
 */
#include "metradb/store.h"

#include <libpmemobj.h>
#include <string.h>

POBJ_LAYOUT_BEGIN(pairs);
POBJ_LAYOUT_ROOT(pairs, struct table)
POBJ_LAYOUT_TOID(pairs, struct node)
POBJ_LAYOUT_TOID(pairs, struct entry)
POBJ_LAYOUT_END(pairs)

struct node { /* of the chains */
    uint64_t key;
    TOID(struct node) next;
    char value[];
};

struct entry { /* of the atomic lists */
    uint64_t key;
    POBJ_LIST_ENTRY(struct entry) list;
    char value[];
};

POBJ_LIST_HEAD(entries, struct entry);

/* The root; its size depends on the number of buckets. A map uses one kind of them. */
struct table {
    union {
        TOID(struct node) chain;
        struct entries list;
    } bucket[1];
};

struct store {
    PMEMobjpool *pool;
    struct table *table;
    uint64_t buckets;
    size_t value_size;
};

static void *open_store(const char *path, size_t pairs, size_t value_size)
{
    struct store *s = store_calloc(sizeof *s);
    s->buckets = pairs;
    s->value_size = value_size;
    s->pool = pmemobj_create(path, POBJ_LAYOUT_NAME(pairs),
                             (128 << 20) + pairs * (2 * value_size + 256), 0600);
    if (!s->pool)
        store_fail("pmemobj_create", pmemobj_errormsg());
    PMEMoid root = pmemobj_root(s->pool, pairs * sizeof s->table->bucket[0]); /* zeroed */
    if (OID_IS_NULL(root))
        store_fail("pmemobj_root", pmemobj_errormsg());
    s->table = pmemobj_direct(root);
    return s;
}

static void close_store(void *store)
{
    struct store *s = store;
    pmemobj_close(s->pool);
    free(s);
}

/* The finaliser of splitmix64, as a fraction of 2^64, times the number of buckets. */
static uint64_t bucket_of(const struct store *s, uint64_t key)
{
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
    key = (key ^ key >> 27) * 0x94d049bb133111eb;
    key ^= key >> 31;
    return (uint64_t)((unsigned __int128)key * s->buckets >> 64);
}

/* ---- hash map tx ----------------------------------------------------------------------------- */

/* The link whose target is the node of the key, or the null at the end of its chain. */
static TOID(struct node) * find_link(struct store *s, uint64_t key)
{
    TOID(struct node) *link = &s->table->bucket[bucket_of(s, key)].chain;
    while (!TOID_IS_NULL(*link) && D_RO(*link)->key != key)
        link = &D_RW(*link)->next;
    return link;
}

/* Call inside a transaction. */
static TOID(struct node)
    new_node(const struct store *s, uint64_t key, const void *value, TOID(struct node) next)
{
    TOID(struct node) id = TX_ALLOC(struct node, sizeof(struct node) + s->value_size);
    struct node *n = D_RW(id);
    n->key = key;
    n->next = next;
    memcpy(n->value, value, s->value_size);
    return id;
}

static bool put_tx(void *store, uint64_t key, const void *value)
{
    struct store *s = store;
    if (!TOID_IS_NULL(*find_link(s, key)))
        return false;
    TOID(struct node) *head = &s->table->bucket[bucket_of(s, key)].chain;
    TX_BEGIN(s->pool)
    {
        TOID(struct node) n = new_node(s, key, value, *head);
        TX_ADD_DIRECT(head);
        *head = n;
    }
    TX_ONABORT
    {
        store_fail("put", pmemobj_errormsg());
    }
    TX_END
    return true;
}

static bool replace_tx(void *store, uint64_t key, const void *value)
{
    struct store *s = store;
    TOID(struct node) *link = find_link(s, key), old = *link;
    if (TOID_IS_NULL(old))
        return false;
    TX_BEGIN(s->pool)
    {
        TOID(struct node) n = new_node(s, key, value, D_RO(old)->next);
        TX_ADD_DIRECT(link);
        *link = n;
        TX_FREE(old);
    }
    TX_ONABORT
    {
        store_fail("replace", pmemobj_errormsg());
    }
    TX_END
    return true;
}

static bool get_tx(void *store, uint64_t key, void *value)
{
    struct store *s = store;
    TOID(struct node) n = *find_link(s, key);
    if (TOID_IS_NULL(n))
        return false;
    memcpy(value, D_RO(n)->value, s->value_size);
    return true;
}

static bool remove_tx(void *store, uint64_t key)
{
    struct store *s = store;
    TOID(struct node) *link = find_link(s, key), n = *link;
    if (TOID_IS_NULL(n))
        return false;
    TX_BEGIN(s->pool)
    {
        TX_ADD_DIRECT(link);
        *link = D_RO(n)->next;
        TX_FREE(n);
    }
    TX_ONABORT
    {
        store_fail("remove", pmemobj_errormsg());
    }
    TX_END
    return true;
}

const struct store_ops store_hashmap_tx = {"hash map tx", open_store, put_tx,     replace_tx,
                                           get_tx,        remove_tx,  close_store};

/* ---- hash map atomic ------------------------------------------------------------------------- */

static struct entries *list_of(struct store *s, uint64_t key)
{
    return &s->table->bucket[bucket_of(s, key)].list;
}

static TOID(struct entry) find_entry(struct store *s, uint64_t key)
{
    TOID(struct entry) e;
    POBJ_LIST_FOREACH(e, list_of(s, key), list)
    {
        if (D_RO(e)->key == key)
            break;
    }
    return e;
}

struct contents {
    uint64_t key;
    const void *value;
    size_t value_size;
};

static int construct(PMEMobjpool *pool, void *object, void *argument)
{
    struct entry *e = object;
    const struct contents *c = argument;
    e->key = c->key;
    pmemobj_flush(pool, &e->key, sizeof e->key);
    pmemobj_memcpy_persist(pool, e->value, c->value, c->value_size);
    return 0;
}

static void insert_first(struct store *s, uint64_t key, const void *value)
{
    struct contents contents = {key, value, s->value_size};
    PMEMoid inserted = POBJ_LIST_INSERT_NEW_HEAD(
        s->pool, list_of(s, key), list, sizeof(struct entry) + s->value_size, construct, &contents);
    if (OID_IS_NULL(inserted))
        store_fail("put", pmemobj_errormsg());
}

static void remove_entry(struct store *s, TOID(struct entry) e)
{
    if (POBJ_LIST_REMOVE_FREE(s->pool, list_of(s, D_RO(e)->key), e, list) != 0)
        store_fail("remove", pmemobj_errormsg());
}

static bool put_atomic(void *store, uint64_t key, const void *value)
{
    struct store *s = store;
    if (!TOID_IS_NULL(find_entry(s, key)))
        return false;
    insert_first(s, key, value);
    return true;
}

static bool replace_atomic(void *store, uint64_t key, const void *value)
{
    struct store *s = store;
    TOID(struct entry) old = find_entry(s, key);
    if (TOID_IS_NULL(old))
        return false;
    insert_first(s, key, value);
    remove_entry(s, old);
    return true;
}

static bool get_atomic(void *store, uint64_t key, void *value)
{
    struct store *s = store;
    TOID(struct entry) e = find_entry(s, key);
    if (TOID_IS_NULL(e))
        return false;
    memcpy(value, D_RO(e)->value, s->value_size);
    return true;
}

static bool remove_atomic(void *store, uint64_t key)
{
    struct store *s = store;
    TOID(struct entry) e = find_entry(s, key);
    if (TOID_IS_NULL(e))
        return false;
    remove_entry(s, e);
    return true;
}

const struct store_ops store_hashmap_atomic = {"hash map atomic", open_store, put_atomic,
                                               replace_atomic,    get_atomic, remove_atomic,
                                               close_store};
