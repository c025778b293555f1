/*
 * The work to be timed. loops.c is compiled twice: by plain clang, and with the marks of pmcc; the
 * names of the second have the prefix `marked_`. Nothing of it touches a container.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Stores of 4 bytes to places in no order: the vectoriser and range marks cannot help. */
void scatter(uint32_t *to, const uint32_t *places, size_t count);
/** Stores that march through memory. */
void fill(uint32_t *to, size_t count, uint32_t seed);
/** Sorts words, counts them in a hash table of chains, writes a report; all on the heap. */
uint64_t word_count(const char *text, size_t length);
/** `count` stores to `lines` lines in turn, `lines` a power of two. */
void store_lines(uint64_t *to, size_t lines, size_t count);

void marked_scatter(uint32_t *to, const uint32_t *places, size_t count);
void marked_fill(uint32_t *to, size_t count, uint32_t seed);
uint64_t marked_word_count(const char *text, size_t length);
void marked_store_lines(uint64_t *to, size_t lines, size_t count);

#ifdef __cplusplus
}
#endif
