/* METRADB: a bucket for each pair; with memory for all, and with what it takes by default. */
#include "metradb/store.h"

#include <metradb.h>
#include <string.h>

/* Ample for copies of all pages that hold pairs: how much memory to give is the user's choice. */
#define MEMORY_MAX (UINT64_C(2) << 30)

struct store {
    metradb *db;
    size_t value_size;
};

static struct metradb_bytes key_bytes(const uint64_t *key)
{
    return metradb_ref(key, sizeof *key);
}

static bool commit(struct store *s, int result, int wanted)
{
    if (result < 0 || metradb_commit(s->db) != 0)
        store_fail("metradb", metradb_errormsg());
    return result == wanted;
}

static void *open_store(const char *path, size_t pairs, size_t value_size, uint64_t memory_max)
{
    struct store *s = store_calloc(sizeof *s);
    s->value_size = value_size;
    s->db = metradb_open(path, &(struct metradb_options){
                                   .flags = METRADB_CREATE | METRADB_EXCLUSIVE,
                                   .key_size = sizeof(uint64_t),
                                   .buckets = pairs,
                                   .memory_max = memory_max,
                               });
    if (!s->db)
        store_fail("metradb", metradb_errormsg());
    return s;
}

static void *open_ample(const char *path, size_t pairs, size_t value_size)
{
    return open_store(path, pairs, value_size, MEMORY_MAX);
}

static void *open_default(const char *path, size_t pairs, size_t value_size)
{
    return open_store(path, pairs, value_size, 0);
}

static bool put(void *store, uint64_t key, const void *value)
{
    struct store *s = store;
    return commit(s, metradb_put(s->db, key_bytes(&key), metradb_ref(value, s->value_size)), 1);
}

static bool replace(void *store, uint64_t key, const void *value)
{
    struct store *s = store;
    return commit(s, metradb_put(s->db, key_bytes(&key), metradb_ref(value, s->value_size)), 0);
}

static bool get(void *store, uint64_t key, void *value)
{
    struct store *s = store;
    struct metradb_bytes found;
    if (metradb_get(s->db, key_bytes(&key), &found) != 1)
        return false;
    memcpy(value, found.data, found.size);
    return true;
}

static bool remove_key(void *store, uint64_t key)
{
    struct store *s = store;
    return commit(s, metradb_delete(s->db, key_bytes(&key)), 1);
}

static void close_store(void *store)
{
    struct store *s = store;
    if (metradb_check(s->db) != 0 || metradb_close(s->db) != 0)
        store_fail("metradb", metradb_errormsg());
    free(s);
}

const struct store_ops store_metradb = {"METRADB", open_ample, put,        replace,
                                        get,       remove_key, close_store};
const struct store_ops store_metradb_default = {"METRADB, 256 MiB", open_default, put, replace, get,
                                                remove_key,         close_store};
