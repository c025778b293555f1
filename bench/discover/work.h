/* Work on the heap, to be timed; compiled by clang, and by `pmcc --discover`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Allocates 64 bytes and frees them, `count` times. */
void allocate_and_free(size_t count);
/** Allocates 16 to 256 bytes `count` times, each in one of `live` places, chosen at random, whose old
 * memory it frees. */
void replace(size_t count, size_t live);
/** Builds a search tree of `count` random keys, sums it up, and frees it. */
uint64_t build_tree(size_t count);
/** The same with a list: each node is linked before its predecessor, changed once, and freed. */
uint64_t build_list(size_t count);

#ifdef __cplusplus
}
#endif
