/*
 * XXH3 through libxxhash's dispatcher, which chooses the instructions by the processor. checksum_mix()
 * hashes three words, and does not read the data again.
 */
#include "base/checksum.h"

#include <xxh_x86dispatch.h> /* XXH3 in AVX2 or AVX-512 where the CPU has them: twice as fast */

uint64_t checksum(const void *bytes, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, size, seed);
}

uint64_t checksum_mix(uint64_t sum, uint64_t a, uint64_t b)
{
    uint64_t words[3] = {sum, a, b};
    return XXH3_64bits(words, sizeof words);
}
