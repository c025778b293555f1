/*
 * METRADB: a key-value store whose pairs survive crashes. Keys are binary, and all have the length that
 * was set when the container was created. Values are bytes, of any number.
 *
 *     metradb *db = metradb_open("users.db", &(struct metradb_options){
 *         .flags = METRADB_CREATE, .key_size = 8, .buckets = 1000});
 *     uint64_t id = 7;
 *     metradb_put(db, metradb_ref(&id, sizeof id), metradb_ref("Ada", 3));
 *     metradb_commit(db);
 *     struct metradb_bytes name;
 *     if (metradb_get(db, metradb_ref(&id, sizeof id), &name) == 1)
 *         printf("%.*s\n", (int)name.size, (const char *)name.data);
 *     metradb_close(db);
 *
 * A container is one file and one namespace. All changes between two commits are one *transaction*,
 * which begins by itself. After a crash the container has the state of the last metradb_commit() that
 * returned: all of a transaction or nothing. No transaction spans several containers.
 *
 * Threads. One thread at a time may use a container. Several threads may use as many containers, and
 * share nothing. No function may be called from a signal handler, or in a child of fork(2).
 *
 * Errors. On failure a function returns -1 or NULL and sets errno. metradb_errormsg() says what failed,
 * on which file, and what to do. A call that failed has changed nothing. Each function lists its own
 * errnos. Any other errno comes from the function of libpm that failed, see libpm.h.
 *
 * Costs. A put writes its value to the medium once, into a fresh buffer. The log has three pointers and
 * a number at most. A commit is one round, whatever its size. Each operation is O(pairs / buckets). The
 * number of buckets never changes, so make about as many buckets as there will be pairs.
 *
 * The idea: METRADB (Marmol, FIU 2017, chapter 5).
 */
#ifndef METRADB_H
#define METRADB_H

#include <libpm.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define METRADB_KEY_MAX 1024 /* bytes */

/** An open container. Owned by the library from metradb_open() to metradb_close(). */
typedef struct metradb metradb;

enum metradb_flags {
    METRADB_CREATE = 1 << 0,    /* create the container if there is none */
    METRADB_EXCLUSIVE = 1 << 1, /* with METRADB_CREATE: fail with EEXIST if there is one */
    METRADB_READONLY = 1 << 2,  /* write nothing; several processes at once may open it so */
};

/** Zero means the default for every field. */
struct metradb_options {
    unsigned flags;      /* enum metradb_flags */
    size_t key_size;     /* bytes of every key, 1 to METRADB_KEY_MAX. Needed for creation. Else it
                            must be 0 or the container's own key size */
    uint64_t buckets;    /* of the hash table, at least 1. Needed for creation, else ignored */
    uint64_t max_size;   /* bytes that the file may grow to, for creation; default 64 GiB */
    uint64_t memory_max; /* about how many bytes of memory copies of stored-to pages may take;
                            default 256 MiB */
    enum pm_engine engine; /* of a new container: PM_ENGINE_REDO, the default, or PM_ENGINE_LOG */
};

/** A reference to bytes. It does not own them. */
struct metradb_bytes {
    const void *data;
    size_t size;
};

static inline struct metradb_bytes metradb_ref(const void *data, size_t size)
{
    struct metradb_bytes bytes = {data, size};
    return bytes;
}

struct metradb_pair {
    struct metradb_bytes key, value;
};

/**
 * Open, or with METRADB_CREATE create, the container at `path`. If the last program that wrote the
 * container died, the state of its last commit is restored first. If `options` is NULL, open an existing
 * container. Creation is atomic, and durable when this function returns. A crash leaves no file, or a
 * file that the next creation completes.
 *
 *     EINVAL        flags that are unknown, or exclude each other; a key_size or number of buckets out
 *                   of range; a key_size that is not the container's
 *     ENOENT        no such file, and no METRADB_CREATE
 *     EEXIST        METRADB_EXCLUSIVE, and the container exists
 *     EBUSY         open already, in this process or another
 *     EBADMSG       not a container, or damaged
 *     EMEDIUMTYPE   a container of another program
 *     ENODATA       its creation was interrupted: create it once more
 *     ENOSPC        no room for the buckets
 */
metradb *metradb_open(const char *path, const struct metradb_options *options);

/**
 * Close a container. Changes that were not committed are undone. Every value that it handed out becomes
 * invalid. Returns -1 if the medium failed; the container is closed all the same. NULL is allowed.
 */
int metradb_close(metradb *db);

/** Delete the container at `path`, durably. EBUSY if it is open anywhere, EMEDIUMTYPE if it belongs to
 * another program. */
int metradb_remove(const char *path);

/**
 * Map `key` to a copy of `value`, in place of its old value. Returns 1 if the key is new, 0 if its value
 * was replaced. Returns -1 with EINVAL for a key of another length, with ENOSPC if the container or the
 * disk is full, with EROFS for METRADB_READONLY.
 */
int metradb_put(metradb *db, struct metradb_bytes key, struct metradb_bytes value);

/**
 * metradb_put() for each of the pairs, in their order. Returns 0, or -1 as metradb_put() does; then none
 * of the pairs was put. After a crash, too, all are there or none: they are part of the open transaction.
 */
int metradb_put_many(metradb *db, const struct metradb_pair *pairs, size_t count);

/**
 * Find the value of `key`. Returns 1 and sets `*value`, or 0 if the key is absent, or -1 with EINVAL for
 * a key of another length. The bytes are not copied: `*value` leads into the container, aligned to 8.
 *
 * The bytes stay there until the commit after the value was replaced or deleted. But a value that was put
 * in the open transaction stays only until it is replaced or deleted, or until metradb_abort(). If a
 * METRADB_READONLY container is open beside its copy, touch the bytes before you hand them to a system
 * call: see PM_MOVABLE.
 */
int metradb_get(const metradb *db, struct metradb_bytes key, struct metradb_bytes *value);

/**
 * metradb_get() for the key of each of the pairs. Returns how many keys were found. The value of an
 * absent key becomes {NULL, 0}. Returns -1 with EINVAL if any key has another length; then no value is
 * set.
 */
ptrdiff_t metradb_get_many(const metradb *db, struct metradb_pair *pairs, size_t count);

/** Delete `key`. Returns 1, or 0 if the key was absent, or -1 as metradb_put() does. */
int metradb_delete(metradb *db, struct metradb_bytes key);

/**
 * Make all changes since the last commit durable, together. After this function has returned 0, no crash
 * undoes them. It takes one round, or none if there are no changes. ENOSPC: the log cannot grow. Then the
 * transaction stays open; commit it again, or abort it.
 */
int metradb_commit(metradb *db);

/** Undo all changes since the last commit. */
int metradb_abort(metradb *db);

/** The position of an enumeration. All zeros is the beginning. It owns nothing. */
struct metradb_cursor {
    uint64_t buckets; /* how many buckets were visited */
    const void *next; /* the next pair in the chain of the last of these buckets */
};

/**
 * Get the next pair, in no useful order. Returns 1, or 0 if there are no more. You may delete the pair
 * that was returned last. After any other change the cursor is invalid.
 *
 *     struct metradb_cursor cursor = {0};
 *     struct metradb_pair pair;
 *     while (metradb_next(db, &cursor, &pair)) ...
 */
int metradb_next(const metradb *db, struct metradb_cursor *cursor, struct metradb_pair *pair);

/** The number of pairs, the bytes of every key, and the number of buckets. O(1). */
uint64_t metradb_count(const metradb *db);
size_t metradb_key_size(const metradb *db);
uint64_t metradb_buckets(const metradb *db);

/** Check everything that can be checked. Returns 0, or -1 with EBADMSG; the message names the first
 * offence. O(n). */
int metradb_check(const metradb *db);

/** The container of libpm that holds the store, for pm_stats() and pm_reserve(). Do not move or free its
 * objects. Owned by `db`. */
pm_container *metradb_container(const metradb *db);

/** The message of the last call that failed in this thread. "" if none has failed. */
const char *metradb_errormsg(void);

#ifdef __cplusplus
}
#endif
#endif
