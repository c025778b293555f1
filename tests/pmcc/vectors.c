/* Vector instructions that write some of their lanes, or to many places. */
#include "subject.h"

#include <immintrin.h>

SUBJECT(masks_avx)
{
    __m256i mask =
        _mm256_set_epi32(n & 64 ? -1 : 0, n & 32 ? -1 : 0, n & 16 ? -1 : 0, n & 8 ? -1 : 0,
                         n & 4 ? -1 : 0, n & 2 ? -1 : 0, n & 1 ? -1 : 0, 0);
    _mm256_maskstore_ps((float *)(m + 20), mask, _mm256_set1_ps((float)n));
    _mm256_maskstore_epi64((long long *)(m + 400), mask, _mm256_set1_epi64x(n));
    _mm_maskstore_pd((double *)(m + 800), _mm256_castsi256_si128(mask), _mm_set1_pd((double)n));
}
SUBJECT(masks_bytes)
{
    char bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = (n >> (i % 7)) & 1 ? (char)0x80 : 0;
    _mm_maskmoveu_si128(_mm_set1_epi8((char)n), _mm_loadu_si128((__m128i *)bytes), m + 55);
}
SUBJECT(streams)
{
    _mm256_stream_si256((__m256i *)((unsigned long)m & -32), _mm256_set1_epi8(3));
}

#ifdef __AVX512F__
SUBJECT(masks_avx512)
{
    _mm512_mask_storeu_epi32(m + 36, (__mmask16)(n * 321), _mm512_set1_epi32((int)n));
    _mm512_mask_storeu_epi8(m + 500, (__mmask64)n << 13, _mm512_set1_epi8((char)n));
}
SUBJECT(compresses)
{
    _mm512_mask_compressstoreu_epi32(m + 60, (__mmask16)(n * 77), _mm512_set1_epi32((int)n));
}
SUBJECT(scatters_avx512)
{
    __m512i places = _mm512_set_epi64(70, 0, 1, 9, 33, 2, 100, 64);
    _mm512_i64scatter_epi64(m, places, _mm512_set1_epi64(n), 8);
    commit();
    _mm512_mask_i64scatter_epi32(m, (__mmask8)n, places, _mm256_set1_epi32((int)n + 1000), 4);
    commit();
    _mm512_mask_i32scatter_pd(m, (__mmask8)(n >> 1), _mm256_set_epi32(7, 70, 700, 5, 50, 500, 0, 1),
                              _mm512_set1_pd((double)n), 8);
    commit();
    _mm_mask_i32scatter_epi64(m, (__mmask8)n, _mm_set_epi32(3, 40, 5, 60), _mm_set1_epi64x(n), 8);
    commit();
    _mm_i32scatter_epi64(m + 512, _mm_set_epi32(-3, -40, 5, -60), _mm_set1_epi64x(n), 8);
}
#endif
