/*
 * METRADB: a key-value store whose pairs survive crashes. Keys are binary and all of one length,
 * set when a container is created; values are bytes, as many as each has.
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
 * A container is one file and one namespace. What is done to it between two commits is a
 * *transaction*, which begins by itself: after a crash either all of it is there, as of the last
 * metradb_commit() that returned, or nothing. There are no transactions over several containers.
 *
 * Threads. A container is used by one thread at a time; many containers by as many threads, which
 * share nothing. Nothing here may be called from a signal handler, or in a child of fork(2).
 *
 * Errors. A failure is -1 or NULL with errno set, and metradb_errormsg() says what failed, on which
 * file, and what to do. A call that failed has changed nothing. Besides what is listed with a call,
 * errno is what libpm.h says of the function of libpm that failed.
 *
 * Costs. A put writes its value to the medium once: into a fresh buffer; the log has three pointers
 * and a number at most. A commit is one round, whatever it holds. Each operation is O(pairs /
 * buckets), so make about as many buckets as there will be pairs: their number never changes.
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
    METRADB_READONLY = 1 << 2,  /* write nothing; several processes may have it open so at once */
};

/** Zero means the default for every field. */
struct metradb_options {
    unsigned flags;      /* enum metradb_flags */
    size_t key_size;     /* bytes of every key, 1 to METRADB_KEY_MAX. Needed for creation; else 0 is
                            whatever the container has, and another number must be that */
    uint64_t buckets;    /* of the hash table, at least 1. Needed for creation, else ignored */
    uint64_t max_size;   /* bytes that the file may grow to, for creation; default 64 GiB */
    uint64_t memory_max; /* bytes of memory for copies of pages that were stored to, more or less;
                            default 256 MiB */
};

/** Some bytes of somebody's. */
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
 * Open, or with METRADB_CREATE create, the container at `path`. If the last program that wrote it
 * died, the state of its last commit is restored first. `options` may be NULL: open an existing one.
 * Creation is durable when this returns, and atomic: a crash leaves nothing, or what the next
 * creation completes.
 *
 *   EINVAL        flags that are unknown, or exclude each other; a key_size or number of buckets out
 *                 of range; a key_size that is not its own
 *   ENOENT        no such file, and no METRADB_CREATE
 *   EEXIST        METRADB_EXCLUSIVE, and it is there
 *   EBUSY         open already, in this process or another
 *   EBADMSG       not a container, or damaged
 *   EMEDIUMTYPE   a container of another program
 *   ENODATA       its creation was interrupted: create it once more
 *   ENOSPC        no room for the buckets
 */
metradb *metradb_open(const char *path, const struct metradb_options *options);

/**
 * Close a container; what was not committed is undone. Every value that it handed out becomes
 * invalid. NULL is 0. -1 if the medium failed; it is closed all the same.
 */
int metradb_close(metradb *db);

/** Delete the container at `path`, durably. EBUSY if it is open anywhere, EMEDIUMTYPE if it is another
 * program's. */
int metradb_remove(const char *path);

/**
 * Map `key` to a copy of `value`; what it was mapped to before is forgotten. 1 if the key is new, 0
 * if its value was replaced. -1 with EINVAL for a key of another length, ENOSPC when the container
 * or the disk is full, EROFS for METRADB_READONLY.
 */
int metradb_put(metradb *db, struct metradb_bytes key, struct metradb_bytes value);

/**
 * metradb_put() for each of the pairs, in their order; 0, or -1 as there and then none of them was
 * put. Atomic in the face of crashes too, since all are of the open transaction.
 */
int metradb_put_many(metradb *db, const struct metradb_pair *pairs, size_t count);

/**
 * Find the value of `key`: 1 and its bytes in `*value`, 0 if the key is not there, -1 with EINVAL
 * for a key of another length. The bytes are not copied: they lie in the container, aligned to 8,
 * and stay there until the commit after that value was replaced or deleted. A value that was put in
 * the open transaction stays only until it is replaced or deleted, or metradb_abort(). (In a container that is METRADB_READONLY and open
 * beside its copy, touch them before a system call does: see PM_MOVABLE.)
 */
int metradb_get(const metradb *db, struct metradb_bytes key, struct metradb_bytes *value);

/**
 * metradb_get() for the key of each of the pairs: how many were found. The value of one that was
 * not is {NULL, 0}. -1 with EINVAL if any key is of another length, and then no value is set.
 */
ptrdiff_t metradb_get_many(const metradb *db, struct metradb_pair *pairs, size_t count);

/** 1 if `key` was there and has been deleted, 0 if it was not, -1 as metradb_put(). */
int metradb_delete(metradb *db, struct metradb_bytes key);

/**
 * Make all that was done since the last commit durable, at once. When this has returned 0 no crash
 * undoes it. One round; none when nothing was done. ENOSPC: the log cannot grow; the transaction
 * stays open, to be committed again or aborted.
 */
int metradb_commit(metradb *db);

/** Undo all that was done since the last commit. */
int metradb_abort(metradb *db);

/** Where an enumeration is; zero at its beginning. A value, nothing to free. */
struct metradb_cursor {
    uint64_t buckets; /* visited */
    const void *next; /* in the chain of the last of them */
};

/**
 * The next pair, in no useful order: 1, or 0 when there are no more. The one that was returned last
 * may be deleted; after any other change the cursor is invalid.
 *
 *     struct metradb_cursor cursor = {0};
 *     struct metradb_pair pair;
 *     while (metradb_next(db, &cursor, &pair)) ...
 */
int metradb_next(const metradb *db, struct metradb_cursor *cursor, struct metradb_pair *pair);

/** Pairs; bytes of every key; buckets. O(1). */
uint64_t metradb_count(const metradb *db);
size_t metradb_key_size(const metradb *db);
uint64_t metradb_buckets(const metradb *db);

/** Check all that can be checked; 0, or -1 with EBADMSG and the first offence in the message. O(n).
 */
int metradb_check(const metradb *db);

/** The container of libpm behind it, for pm_stats() and pm_reserve(); not for what moves or frees its
 * objects. Owned by `db`. */
pm_container *metradb_container(const metradb *db);

/** What the last call that failed in this thread has to say; "" if none has. */
const char *metradb_errormsg(void);

#ifdef __cplusplus
}
#endif
#endif
