/*
 * 64-bit checksums (XXH3, from libxxhash). They tell a whole structure from a torn
 * one; they are no defence against a writer who means harm. Async-signal-safe; about 0.1 µs a page.
 */
#ifndef PM_BASE_CHECKSUM_H
#define PM_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t checksum(const void *bytes, size_t size, uint64_t seed);

/* Fold two more values into a checksum, for instance the epoch and the page it belongs to. */
uint64_t checksum_mix(uint64_t sum, uint64_t a, uint64_t b);

/* The same of bytes that come in pieces, with seed 0. */
struct checksum_stream {
    char state[576] __attribute__((aligned(64)));
};
void checksum_begin(struct checksum_stream *stream);
void checksum_add(struct checksum_stream *stream, const void *bytes, size_t size);
uint64_t checksum_end(const struct checksum_stream *stream);

#endif
