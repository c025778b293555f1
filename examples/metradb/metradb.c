/*
 * METRADB on a container of libpm.
 *
 *   root -> table: key_size, buckets, count, heads --> [head] [head] [head] ...
 *                                                         |
 *                                             pair <------+
 *                                             next, back, value_size, key, value
 *                                               |
 *                                               +--> pair
 *
 * The invariants:
 *
 *   1. A pair is in the chain of the bucket that its key hashes to, and no key is there twice.
 *   2. `*pair->back == pair`: `back` is the address of the link to the pair, which is the head or the
 *      `next` of the pair before. So taking a pair out of its chain needs no walk.
 *   3. A pair never changes but for its links: a new value is a new pair.
 *
 * Because of invariant 3 a value is written once. libpm writes a fresh object straight to its place, and
 * the log has only the links to the object. For this, objects must not share cache lines. Hence the
 * container's granularity.
 *
 * Tracking. Few stores hit memory that is not fresh, so the code announces these by pm_dirty()
 * (PM_TRACKER_STORES). Any compiler will do, no store is a page fault, and a commit costs as much as its
 * cache lines. Each function first does everything that can fail, announcing included. Then it stores.
 */
#define _XOPEN_SOURCE 700 /* strdup, realpath */
#include "metradb.h"

#include <errno.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    LINE = 64, /* bytes; a pair owns whole lines */
    MESSAGE_MAX = 512,
};

static const char layout[] = "metradb/1";

struct pair {
    struct pair *next;  /* in the chain; NULL at its end */
    struct pair **back; /* the link to this pair */
    uint64_t value_size;
    unsigned char key[]; /* and behind it, aligned to 8, the value */
};

/* The root of the container. */
struct table {
    struct pair **heads; /* one for each bucket */
    uint64_t key_size;
    uint64_t buckets;
    uint64_t count; /* pairs */
};

struct metradb {
    pm_container *container;
    struct table *table;
    char *path;
};

/* ---- errors ---------------------------------------------------------------------------------- */

static _Thread_local char message[MESSAGE_MAX];

__attribute__((format(printf, 2, 3))) static int fail(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    errno = error;
    return -1;
}

/* A function of libpm has failed. Take over its message. */
static int fail_below(void)
{
    return fail(errno, "%s", pm_errormsg());
}

const char *metradb_errormsg(void)
{
    return message;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Bytes of a pair before its value. */
static size_t value_offset(const struct table *t)
{
    size_t end = offsetof(struct pair, key) + t->key_size;
    return (end + alignof(uint64_t) - 1) / alignof(uint64_t) * alignof(uint64_t);
}

static unsigned char *value_of(const struct table *t, const struct pair *p)
{
    return (unsigned char *)p + value_offset(t);
}

/* The bucket of a key: the hash, taken as a fraction of 2^64, times the number of buckets. */
static struct pair **head_of(const struct table *t, const void *key)
{
    XXH64_hash_t hash = XXH3_64bits(key, t->key_size);
    return &t->heads[(uint64_t)((unsigned __int128)hash * t->buckets >> 64)];
}

/* Where a key belongs, and its pair if it is there. */
struct spot {
    struct pair **head;
    struct pair *pair;
};

static struct spot find(const struct table *t, const void *key)
{
    struct spot spot = {.head = head_of(t, key)};
    spot.pair = *spot.head;
    while (spot.pair && memcmp(spot.pair->key, key, t->key_size) != 0)
        spot.pair = spot.pair->next;
    return spot;
}

static int check_key(const metradb *db, struct metradb_bytes key)
{
    if (key.size == db->table->key_size)
        return 0;
    return fail(EINVAL, "%s: a key of %zu bytes; here all keys have %llu", db->path, key.size,
                (unsigned long long)db->table->key_size);
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* Announce the stores that replace or take out the pair at a spot. If there is no pair, announce the stores
 * that make a new pair the first of the chain. Earlier stores of the same call do not interfere: they link
 * in new pairs, which are announced as a whole. */
static int announce(struct table *t, struct spot spot)
{
    struct pair **link = spot.pair ? spot.pair->back : spot.head;
    struct pair *after = spot.pair ? spot.pair->next : *spot.head;
    return pm_dirty(link, sizeof *link) != 0 ||
                   (after && pm_dirty(&after->back, sizeof after->back) != 0) ||
                   pm_dirty(&t->count, sizeof t->count) != 0
               ? fail_below()
               : 0;
}

/* Make `link` lead to `p`, which may be NULL. */
static void set_link(struct pair **link, struct pair *p)
{
    *link = p;
    if (p)
        p->back = link;
}

/* Make a new pair that is in no chain. NULL with a message on failure. */
static struct pair *new_pair(metradb *db, struct metradb_bytes key, struct metradb_bytes value)
{
    const struct table *t = db->table;
    size_t size;
    if (__builtin_add_overflow(value_offset(t), value.size, &size))
        size = SIZE_MAX; /* it fails like any other size that does not fit */
    struct pair *p = pm_malloc(db->container, size);
    if (!p) {
        fail_below();
        return NULL;
    }
    if (pm_mark_pointers(&p->next, 2) != 0 || pm_dirty(p, size) != 0) {
        fail_below();
        pm_free(p);
        return NULL;
    }
    p->next = NULL;
    p->value_size = value.size;
    memcpy(p->key, key.data, t->key_size);
    if (value.size > 0)
        memcpy(value_of(t, p), value.data, value.size);
    return p;
}

/* Put a new pair into its spot. Returns 1, or 0 if the pair replaces another. It cannot fail: the stores have
 * been announced, and pm_free() fails only for pointers that are no objects. */
static int enchain(struct table *t, struct spot spot, struct pair *p)
{
    struct pair **link = spot.pair ? spot.pair->back : spot.head;
    set_link(&p->next, spot.pair ? spot.pair->next : *spot.head);
    set_link(link, p);
    if (spot.pair)
        pm_free(spot.pair);
    else
        t->count++;
    return !spot.pair;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

int metradb_put(metradb *db, struct metradb_bytes key, struct metradb_bytes value)
{
    struct table *t = db->table;
    if (check_key(db, key) != 0)
        return -1;
    struct spot spot = find(t, key.data);
    if (announce(t, spot) !=
        0) /* first, so that these lines come to the cache while the value is copied */
        return -1;
    struct pair *p = new_pair(db, key, value);
    return p ? enchain(t, spot, p) : -1;
}

int metradb_put_many(metradb *db, const struct metradb_pair *pairs, size_t count)
{
    struct table *t = db->table;
    struct pair *made = NULL, **end = &made; /* the new pairs in order, linked by `next` */
    bool failed = false;
    for (size_t i = 0; i < count && !failed; i++) {
        struct pair *p = NULL;
        if (check_key(db, pairs[i].key) == 0 && announce(t, find(t, pairs[i].key.data)) == 0)
            p = new_pair(db, pairs[i].key, pairs[i].value);
        failed = !p;
        *end = p;
        end = p ? &p->next : end;
    }
    for (struct pair *p = made, *next; p; p = next) {
        next = p->next;
        if (failed)
            pm_free(p);
        else
            enchain(t, find(t, p->key), p);
    }
    return failed ? -1 : 0;
}

int metradb_get(const metradb *db, struct metradb_bytes key, struct metradb_bytes *value)
{
    if (check_key(db, key) != 0)
        return -1;
    const struct table *t = db->table;
    const struct pair *p = find(t, key.data).pair;
    if (!p)
        return 0;
    *value = metradb_ref(value_of(t, p), p->value_size);
    return 1;
}

ptrdiff_t metradb_get_many(const metradb *db, struct metradb_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (check_key(db, pairs[i].key) != 0)
            return -1;
    ptrdiff_t found = 0;
    for (size_t i = 0; i < count; i++) {
        pairs[i].value = metradb_ref(NULL, 0);
        found += metradb_get(db, pairs[i].key, &pairs[i].value);
    }
    return found;
}

int metradb_delete(metradb *db, struct metradb_bytes key)
{
    struct table *t = db->table;
    if (check_key(db, key) != 0)
        return -1;
    struct spot spot = find(t, key.data);
    if (!spot.pair)
        return 0;
    if (announce(t, spot) != 0)
        return -1;
    set_link(spot.pair->back, spot.pair->next);
    t->count--;
    pm_free(spot.pair);
    return 1;
}

int metradb_next(const metradb *db, struct metradb_cursor *cursor, struct metradb_pair *pair)
{
    const struct table *t = db->table;
    const struct pair *p = cursor->next;
    while (!p && cursor->buckets < t->buckets)
        p = t->heads[cursor->buckets++];
    if (!p)
        return 0;
    cursor->next = p->next;
    pair->key = metradb_ref(p->key, t->key_size);
    pair->value = metradb_ref(value_of(t, p), p->value_size);
    return 1;
}

uint64_t metradb_count(const metradb *db)
{
    return db->table->count;
}

size_t metradb_key_size(const metradb *db)
{
    return db->table->key_size;
}

uint64_t metradb_buckets(const metradb *db)
{
    return db->table->buckets;
}

/* ---- transactions ---------------------------------------------------------------------------- */

int metradb_commit(metradb *db)
{
    return pm_commit(db->container) == 0 ? 0 : fail_below();
}

int metradb_abort(metradb *db)
{
    return pm_rollback(db->container) == 0 ? 0 : fail_below();
}

/* ---- opening and closing --------------------------------------------------------------------- */

static int check_options(const char *path, const struct metradb_options *o)
{
    const unsigned known = METRADB_CREATE | METRADB_EXCLUSIVE | METRADB_READONLY;
    if (o->flags & ~known)
        return fail(EINVAL, "%s: flags of %#x are unknown; use those of enum metradb_flags", path,
                    o->flags & ~known);
    if (o->flags & METRADB_READONLY && o->flags & METRADB_CREATE)
        return fail(EINVAL, "%s: METRADB_READONLY excludes METRADB_CREATE", path);
    if (o->flags & METRADB_EXCLUSIVE && !(o->flags & METRADB_CREATE))
        return fail(EINVAL, "%s: METRADB_EXCLUSIVE goes with METRADB_CREATE only", path);
    if (o->key_size > METRADB_KEY_MAX || (o->key_size == 0 && o->flags & METRADB_CREATE))
        return fail(EINVAL, "%s: keys of %zu bytes; they can have 1 to %d", path, o->key_size,
                    METRADB_KEY_MAX);
    if (o->buckets == 0 && o->flags & METRADB_CREATE)
        return fail(EINVAL, "%s: a hash table needs at least 1 bucket", path);
    return 0;
}

static int create_table(metradb *db, const struct metradb_options *o)
{
    pm_container *c = db->container;
    struct table *t = pm_malloc_typed(c, PM_TYPE(struct table, heads), 1);
    struct pair **heads = pm_calloc(c, o->buckets, sizeof *heads);
    if (!t || !heads || pm_mark_pointers(heads, o->buckets) != 0 || pm_dirty(t, sizeof *t) != 0 ||
        pm_setroot(c, t, sizeof *t) != 0)
        return fail_below();
    *t = (struct table){.heads = heads, .key_size = o->key_size, .buckets = o->buckets};
    db->table = t;
    return metradb_commit(db);
}

/* Check the table of an existing container, so that no access reaches beyond its objects. */
static int check_table(const metradb *db, const struct metradb_options *o)
{
    const struct table *t = db->table;
    if (pm_usable_size(t) < sizeof *t || t->key_size == 0 || t->key_size > METRADB_KEY_MAX ||
        t->buckets == 0 || t->buckets > pm_usable_size(t->heads) / sizeof *t->heads)
        return fail(EBADMSG, "%s: the hash table is damaged; restore the file from a backup",
                    db->path);
    if (o->key_size != 0 && o->key_size != t->key_size)
        return fail(EINVAL, "%s: keys of %zu bytes are wanted; here they have %llu", db->path,
                    o->key_size, (unsigned long long)t->key_size);
    return 0;
}

static int load_table(metradb *db, const struct metradb_options *o)
{
    db->table = pm_getroot(db->container);
    bool create = o->flags & METRADB_CREATE;
    if (!db->table && create)
        return create_table(db, o);
    if (!db->table)
        return fail(ENODATA, "%s: its creation was interrupted; create it once more", db->path);
    if (create && o->flags & METRADB_EXCLUSIVE)
        return fail(EEXIST, "%s: is there already; use it, or remove it first", db->path);
    return check_table(db, o);
}

/* PM_EXCLUSIVE is not used, since a container without a table counts as absent. With PM_RELOCATE, values are
 * ordinary memory wherever the container lies, so that system calls accept them. */
static pm_container *open_container(const char *path, const struct metradb_options *o)
{
    struct pm_options options = {
        .size = sizeof options,
        .flags = PM_MOVABLE | PM_ANNOUNCED | (o->flags & METRADB_CREATE ? PM_CREATE : 0) |
                 (o->flags & METRADB_READONLY ? PM_READONLY : PM_RELOCATE),
        .engine = o->engine,
        .tracker = PM_TRACKER_STORES,
        .layout = layout,
        .private_max = o->memory_max,
        .max_size = o->max_size,
        .granularity = LINE,
    };
    return pm_open(path, &options);
}

static void release(metradb *db)
{
    free(db->path);
    free(db);
}

/* Delete the file of a creation that failed. It would force its max_size on the next creation. But since
 * the file was closed, another process may have completed it. So delete the file while it is open here, and
 * only if it is still empty. Nobody else can open it meanwhile. PM_PATH_ERROR keeps pm_close() from printing
 * a warning that the file is gone. */
static void remove_unfinished(const char *path)
{
    pm_container *c = pm_open(path, &(struct pm_options){
                                        .size = sizeof(struct pm_options),
                                        .flags = PM_MOVABLE | PM_ANNOUNCED | PM_PATH_ERROR,
                                        .tracker = PM_TRACKER_STORES,
                                        .layout = layout,
                                    });
    char *file = c && !pm_getroot(c) ? realpath(path, NULL) : NULL;
    if (file)
        unlink(file);
    free(file);
    pm_close(c);
}

metradb *metradb_open(const char *path, const struct metradb_options *options)
{
    static const struct metradb_options defaults;
    const struct metradb_options *o = options ? options : &defaults;
    if (check_options(path, o) != 0)
        return NULL;
    metradb *db = calloc(1, sizeof *db);
    if (!db || !(db->path = strdup(path))) {
        fail(ENOMEM, "%s: no memory for its handle", path);
        free(db);
        return NULL;
    }
    db->container = open_container(path, o);
    if (!db->container) {
        fail_below();
        release(db);
        return NULL;
    }
    if (load_table(db, o) == 0)
        return db;

    int error = errno;
    pm_rollback(db->container);
    bool empty = !pm_getroot(db->container);
    pm_close(db->container);
    if (empty && o->flags & METRADB_CREATE)
        remove_unfinished(path);
    release(db);
    errno = error;
    return NULL;
}

int metradb_close(metradb *db)
{
    if (!db)
        return 0;
    int result = pm_close(db->container) == 0 ? 0 : fail_below();
    release(db);
    return result;
}

int metradb_remove(const char *path)
{
    metradb *db = metradb_open(path, &(struct metradb_options){.flags = METRADB_READONLY});
    if (!db && errno != ENODATA && errno != EBADMSG) /* a broken container may be deleted, too */
        return -1;
    metradb_close(db);
    return pm_delete(path) == 0 ? 0 : fail_below();
}

pm_container *metradb_container(const metradb *db)
{
    return db->container;
}

/* ---- checking -------------------------------------------------------------------------------- */

/* Check the pair that `*link` leads to. Returns a text that says what is wrong, or NULL. */
static const char *check_pair(const struct table *t, struct pair **head, struct pair *const *link)
{
    const struct pair *p = *link;
    size_t usable = pm_usable_size(p), before = value_offset(t);
    if (usable < before || p->value_size > usable - before)
        return "a link leads to no pair";
    if (p->back != link)
        return "a pair does not know the link that leads to it";
    if (head_of(t, p->key) != head)
        return "a pair is in the chain of another bucket";
    for (const struct pair *other = *head; other != p; other = other->next)
        if (memcmp(other->key, p->key, t->key_size) == 0)
            return "a key is there twice";
    return NULL;
}

/* The number of objects in the container: the table, its heads, and one for each pair. */
static uint64_t count_objects(pm_container *c)
{
    uint64_t count = 0;
    for (void *p = NULL; (p = pm_next_object(c, p, NULL)) != NULL;)
        count++;
    return count;
}

static const char *check_chains(const metradb *db)
{
    const struct table *t = db->table;
    uint64_t pairs = 0;
    for (uint64_t i = 0; i < t->buckets; i++)
        for (struct pair **link = &t->heads[i]; *link; link = &(*link)->next) {
            if (++pairs > t->count) /* or a cycle */
                return "there are more pairs than are counted";
            const char *offence = check_pair(t, &t->heads[i], link);
            if (offence)
                return offence;
        }
    if (pairs != t->count)
        return "there are fewer pairs than are counted";
    return count_objects(db->container) == 2 + pairs ? NULL : "memory is lost";
}

int metradb_check(const metradb *db)
{
    if (pm_check(db->container) != 0)
        return fail_below();
    const char *offence = check_chains(db);
    return offence ? fail(EBADMSG, "%s: %s; restore the file from a backup", db->path, offence) : 0;
}
