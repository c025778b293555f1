/*
 * A peer: one way to keep the four example structures (malloc, the floor, a log by hand, the modes
 * of libpm, libpmemobj). Each measuring program links exactly one, because the volatile and the
 * persistent build of the examples are the same source and so have the same names.
 *
 * A peer that cannot do what is asked prints why and exits: a benchmark has no use for errors.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

enum peer_operation { PEER_INSERT, PEER_LOOKUP, PEER_REMOVE };

extern const char *const peer_name;

/** Operations in one transaction while the structure is filled, which is not timed: what suits. */
extern const size_t peer_preload_batch;

/** Create the structure named `structure` in a new file at `path`, for up to `keys_max` keys. */
void peer_open(const char *path, const char *structure, size_t keys_max);

/**
 * Do `operation` with each of the keys, all in one durable transaction. Returns how many did what
 * they should: inserted a new key, found the right value, removed a key that was there.
 */
size_t peer_apply(enum peer_operation operation, const uint64_t *keys, size_t count);

/** How many keys the structure says it holds. */
uint64_t peer_size(void);

void peer_close(void);

/** What a peer wrote to the medium since peer_open(). */
struct peer_counts {
    uint64_t commits;       /* that changed something */
    uint64_t bytes_logged;  /* 0 if a peer does not tell its log from the rest */
    uint64_t lines_flushed; /* cache lines of 64 bytes written back, the log's not among them */
};

/** False if the peer does not count. */
bool peer_read_counts(struct peer_counts *counts);

/** Bytes that the floor, or a log by hand, shall log at each commit; whoever calls peer_apply() sets
 * it beforehand. */
extern size_t peer_log_bytes;

/* For those who implement a peer. */

/** The value that belongs to a key. */
static inline uint64_t peer_value(uint64_t key)
{
    return ~key;
}

/** One operation with one key; true if it did what it should. */
typedef bool peer_step(uint64_t key);

static inline size_t peer_count(peer_step *step, const uint64_t *keys, size_t count)
{
    size_t right = 0;
    for (size_t i = 0; i < count; i++)
        right += step(keys[i]);
    return right;
}

/** Say what failed, and exit. */
static inline void peer_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", peer_name, what, why);
    exit(1);
}

#ifdef __cplusplus
}
#endif
#endif
