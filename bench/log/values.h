/*
 * Structures of values of 128 bytes: maps, and an array whose elements are swapped (sps). "Log-Structured
 * Non-Volatile Main Memory" (Hu et al., USENIX ATC 2017) measures these. Each program links one peer. In a map
 * the value of a key is the place of an object with the bytes.
 *
 * A peer that cannot do what is asked prints why and exits.
 */
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VALUE_BYTES = 128 };

extern const char *const values_peer;

/** Create the structure in a new file at `path`: `sps`, with so many elements, or a map for up to as many keys.
 * `live_percent` is libpm's option; 0 is its default, and all that other peers take. */
void values_open(const char *path, const char *structure, uint64_t count, unsigned live_percent);

/** A transaction, from values_begin() to values_commit(): insert keys that are new, or store other values to
 * keys that are there. A value is made of `number`. In sps `key` is an element, and none is inserted. */
void values_begin(void);
void values_insert(uint64_t key, uint64_t number);
void values_update(uint64_t key, uint64_t number);
void values_swap(uint64_t a, uint64_t b);
void values_commit(void);

/** The first word of a key's value, or of an element. */
uint64_t values_first(uint64_t key);

/** Bytes written to the medium since values_open(); UINT64_MAX if the peer does not tell. */
uint64_t values_written(void);

void values_close(void);

/* For those who implement a peer. */

static inline void values_fill(void *value, uint64_t number)
{
    uint64_t *words = (uint64_t *)value;
    for (size_t i = 0; i < VALUE_BYTES / sizeof *words; i++)
        words[i] = number + i;
}

static inline void values_exchange(void *a, void *b)
{
    char spare[VALUE_BYTES];
    memcpy(spare, a, VALUE_BYTES);
    memcpy(a, b, VALUE_BYTES);
    memcpy(b, spare, VALUE_BYTES);
}

static inline void values_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", values_peer, what, why);
    exit(1);
}

#ifdef __cplusplus
}
#endif
#endif
