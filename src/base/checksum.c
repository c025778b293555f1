/* XXH3 through libxxhash's dispatcher, which chooses the instructions by the processor. */
#include "base/checksum.h"

#include <immintrin.h>
#include <xxh_x86dispatch.h> /* XXH3 in AVX2 or AVX-512 where the CPU has them: twice as fast */

/* Up to this many bytes XXH3 uses no vectors. */
#define SMALL_MAX 240

/* libxxhash leaves data in the upper halves of the AVX registers. Then each SSE instruction of the program
 * has to keep them, and a loop in floating point took four times as long after a commit. */
__attribute__((target("avx"))) static void clear_upper_halves(void)
{
    _mm256_zeroupper();
}

uint64_t checksum(const void *bytes, size_t size, uint64_t seed)
{
    uint64_t sum = XXH3_64bits_withSeed(bytes, size, seed);
    if (size > SMALL_MAX && __builtin_cpu_supports("avx"))
        clear_upper_halves();
    return sum;
}
