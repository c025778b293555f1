#include "base/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t checksum(const void *bytes, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, size, seed);
}

uint64_t checksum_mix(uint64_t sum, uint64_t a, uint64_t b)
{
    uint64_t words[3] = {sum, a, b};
    return XXH3_64bits(words, sizeof words);
}
