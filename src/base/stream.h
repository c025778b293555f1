/* Copies past the cache. Who copies reads the copy seldom, and the cache is for the program. Another thread
 * may read it after a fence, or after an instruction that locks. */
#ifndef PM_BASE_STREAM_H
#define PM_BASE_STREAM_H

#include "base/bits.h"

#include <emmintrin.h>

/* Copy a line; both are aligned. */
static inline void stream_line(char *to, const char *from)
{
    enum { PIECE = sizeof(__m128i) };
#pragma GCC unroll 4
    for (size_t i = 0; i < PM_LINE; i += PIECE)
        _mm_stream_si128((__m128i *)(to + i), _mm_load_si128((const __m128i *)(from + i)));
}

/* Copy whole lines, at least one. */
static inline void stream_lines(char *to, const char *from, size_t bytes)
{
    for (const char *end = from + bytes; from < end; from += PM_LINE, to += PM_LINE)
        stream_line(to, from);
}

#endif
