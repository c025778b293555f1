/* Apart from checksum.c, which calls a library that chooses the instructions by the processor. Here the size
 * is known and small, so the hash is inline, and takes a third of the instructions. */
#define XXH_INLINE_ALL
#include "base/checksum.h"

#include <xxhash.h>

uint64_t checksum_mix(uint64_t sum, uint64_t a, uint64_t b)
{
    uint64_t words[3] = {sum, a, b};
    return XXH3_64bits(words, sizeof words);
}
