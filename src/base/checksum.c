/* XXH3 through libxxhash's dispatcher, which chooses the instructions by the processor. */
#define XXH_STATIC_LINKING_ONLY /* the state of a stream, on the stack */
#include "base/checksum.h"

#include <assert.h>
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

static void leave_vectors(size_t size)
{
    if (size > SMALL_MAX && __builtin_cpu_supports("avx"))
        clear_upper_halves();
}

uint64_t checksum(const void *bytes, size_t size, uint64_t seed)
{
    uint64_t sum = XXH3_64bits_withSeed(bytes, size, seed);
    leave_vectors(size);
    return sum;
}

static XXH3_state_t *state_of(const struct checksum_stream *stream)
{
    static_assert(sizeof(XXH3_state_t) <= sizeof stream->state, "it fits");
    return (XXH3_state_t *)stream->state;
}

void checksum_begin(struct checksum_stream *stream)
{
    XXH3_INITSTATE(state_of(stream));
    XXH3_64bits_reset(state_of(stream));
}

void checksum_add(struct checksum_stream *stream, const void *bytes, size_t size)
{
    XXH3_64bits_update(state_of(stream), bytes, size);
    leave_vectors(size);
}

uint64_t checksum_end(const struct checksum_stream *stream)
{
    uint64_t sum = XXH3_64bits_digest(state_of(stream));
    leave_vectors(SIZE_MAX);
    return sum;
}
