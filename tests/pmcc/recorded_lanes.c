/*
 * Pointers in vectors of narrower lanes, and in vectors of doubles: passed and returned, chosen by masks, and
 * permuted by instructions of the processor. The pass does not know where such an instruction puts a lane.
 */
#include "recorded.h"

#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, used))
#define AVX2     __attribute__((noinline, used, target("avx2")))
#define AVX512   __attribute__((noinline, used, target("avx512f")))

enum { WORDS = 8 };

/* What the functions store: words of `a` and `b`, by what `how` says. */
struct lanes {
    uintptr_t a[WORDS], b[WORDS];
    struct {
        uint64_t evens[WORDS];     /* all bits are set in words 0, 2 and so on */
        uint64_t backwards[WORDS]; /* numbers of words, the last one first */
        uint32_t halves[WORDS];    /* the same in halves of words, for 4 words */
        uint8_t bytes[16];         /* the same in bytes, for 2 words */
        uint64_t crossed[WORDS];   /* 2, 0, 2, 0: for each pair of words the other one */
    } how;
};

/* ---- without instructions of newer processors ------------------------------------------------- */

NOINLINE static __m128 floats_at(const void *from)
{
    return _mm_loadu_ps(from);
}
NOINLINE static void store_floats(void *to, __m128 floats)
{
    _mm_storeu_ps(to, floats);
}
static void return_floats(uintptr_t *to, const struct lanes *l)
{
    _mm_storeu_ps((float *)to, floats_at(l->a));
}
static void pass_floats(uintptr_t *to, const struct lanes *l)
{
    store_floats(to, _mm_loadu_ps((const float *)l->a));
}
NOINLINE static void choose_floats(uintptr_t *to, const struct lanes *l)
{
    __m128 a = _mm_loadu_ps((const float *)l->a), b = _mm_loadu_ps((const float *)l->b);
    __m128 mask = _mm_loadu_ps((const float *)l->how.evens);
    _mm_storeu_ps((float *)to, _mm_or_ps(_mm_and_ps(mask, a), _mm_andnot_ps(mask, b)));
}
NOINLINE static void choose_by_difference(uintptr_t *to, const struct lanes *l)
{
    __m128 a = _mm_loadu_ps((const float *)l->a), b = _mm_loadu_ps((const float *)l->b);
    __m128 mask = _mm_loadu_ps((const float *)l->how.evens);
    _mm_storeu_ps((float *)to, _mm_xor_ps(b, _mm_and_ps(mask, _mm_xor_ps(a, b))));
}
NOINLINE static void permute_mmx(uintptr_t *to, const struct lanes *l)
{
    for (int i = 0; i < 2; i++) {
        __m64 word;
        memcpy(&word, &l->a[i], sizeof word);
        word = _mm_shuffle_pi16(_mm_shuffle_pi16(word, 0x1b), 0x1b);
        memcpy(&to[i], &word, sizeof word);
    }
    _mm_empty();
}
NOINLINE static void store_in_assembly(uintptr_t *to, const struct lanes *l)
{
    __asm__("movups %1, %0" : "=m"(*(__m128_u *)to) : "x"(_mm_loadu_ps((const float *)l->a)));
}

/* The last lane is half a word. */
typedef int odd_ints __attribute__((ext_vector_type(5), aligned(4), may_alias));
NOINLINE static void copy_odd_ints(uintptr_t *to, const struct lanes *l)
{
    *(odd_ints *)to = *(const odd_ints *)l->a;
}

/* ---- AVX2 and what came before it ------------------------------------------------------------- */

AVX2 static void shuffle_bytes(uintptr_t *to, const struct lanes *l)
{
    __m128i order = _mm_loadu_si128((const __m128i *)l->how.bytes);
    _mm_storeu_si128((__m128i *)to,
                     _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)l->a), order));
}
AVX2 static void blend_bytes(uintptr_t *to, const struct lanes *l)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)l->a);
    __m256i b = _mm256_loadu_si256((const __m256i *)l->b);
    __m256i mask = _mm256_loadu_si256((const __m256i *)l->how.evens);
    _mm256_storeu_si256((__m256i *)to, _mm256_blendv_epi8(b, a, mask));
}
AVX2 static void blend_floats(uintptr_t *to, const struct lanes *l)
{
    __m256 a = _mm256_loadu_ps((const float *)l->a), b = _mm256_loadu_ps((const float *)l->b);
    __m256 mask = _mm256_loadu_ps((const float *)l->how.evens);
    _mm256_storeu_ps((float *)to, _mm256_blendv_ps(b, a, mask));
}
AVX2 static void blend_doubles(uintptr_t *to, const struct lanes *l)
{
    __m256d a = _mm256_loadu_pd((const double *)l->a), b = _mm256_loadu_pd((const double *)l->b);
    __m256d mask = _mm256_loadu_pd((const double *)l->how.evens);
    _mm256_storeu_pd((double *)to, _mm256_blendv_pd(b, a, mask));
}
AVX2 static void permute_ints(uintptr_t *to, const struct lanes *l)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)l->a);
    __m256i order = _mm256_loadu_si256((const __m256i *)l->how.halves);
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(a, order));
}
AVX2 static void permute_floats(uintptr_t *to, const struct lanes *l)
{
    __m256 a = _mm256_loadu_ps((const float *)l->a);
    __m256i order = _mm256_loadu_si256((const __m256i *)l->how.halves);
    _mm256_storeu_ps((float *)to, _mm256_permutevar8x32_ps(a, order));
}
AVX2 static void permute_doubles(uintptr_t *to, const struct lanes *l)
{
    __m256d a = _mm256_loadu_pd((const double *)l->a);
    __m256i order = _mm256_loadu_si256((const __m256i *)l->how.crossed);
    _mm256_storeu_pd((double *)to, _mm256_permutevar_pd(a, order));
}
AVX2 static void load_masked(uintptr_t *to, const struct lanes *l)
{
    __m256i mask = _mm256_set1_epi64x((long long)l->how.evens[0]);
    _mm256_storeu_ps((float *)to, _mm256_maskload_ps((const float *)l->a, mask));
}
AVX2 static void gather_ints(uintptr_t *to, const struct lanes *l)
{
    __m256i order = _mm256_loadu_si256((const __m256i *)l->how.halves);
    _mm256_storeu_si256((__m256i *)to, _mm256_i32gather_epi32((const int *)l->a, order, 4));
}

/* ---- AVX-512 ---------------------------------------------------------------------------------- */

AVX512 static void permute_eight_doubles(uintptr_t *to, const struct lanes *l)
{
    __m512i order = _mm512_loadu_si512(l->how.backwards);
    _mm512_storeu_pd(to, _mm512_permutexvar_pd(order, _mm512_loadu_pd(l->a)));
}
AVX512 static void compress_doubles(uintptr_t *to, const struct lanes *l)
{
    _mm512_storeu_pd(to,
                     _mm512_maskz_compress_pd((__mmask8)l->how.evens[0], _mm512_loadu_pd(l->a)));
}
AVX512 static void choose_ints(uintptr_t *to, const struct lanes *l)
{
    __m512i mask = _mm512_loadu_si512(l->how.evens);
    __m512i a = _mm512_loadu_si512(l->a), b = _mm512_loadu_si512(l->b);
    _mm512_storeu_si512(to, _mm512_ternarylogic_epi32(mask, a, b, 0xca));
}

/* ---- the structure ---------------------------------------------------------------------------- */

enum order { SAME, CHOSEN, BACKWARDS, CROSSED };

static const struct way {
    void (*store)(uintptr_t *to, const struct lanes *l);
    enum order order;
    int words;
} ways[] = {
    {return_floats, SAME, 2},
    {pass_floats, SAME, 2},
    {choose_floats, CHOSEN, 2},
    {copy_odd_ints, SAME, 2},
    {choose_by_difference, CHOSEN, 2},
    {permute_mmx, SAME, 2},
    {store_in_assembly, SAME, 2},
#define BASIC 7
    {shuffle_bytes, BACKWARDS, 2},
    {blend_bytes, CHOSEN, 4},
    {blend_floats, CHOSEN, 4},
    {blend_doubles, CHOSEN, 4},
    {permute_ints, BACKWARDS, 4},
    {permute_floats, BACKWARDS, 4},
    {permute_doubles, CROSSED, 4},
    {load_masked, SAME, 4},
    {gather_ints, BACKWARDS, 4},
#define WITH_AVX2 16
    {permute_eight_doubles, BACKWARDS, 8},
    {compress_doubles, SAME, 8},
    {choose_ints, CHOSEN, 8},
#define WITH_AVX512 19
};

_Static_assert(sizeof ways / sizeof *ways == WITH_AVX512, "the numbers of ways");

struct permuted {
    struct permuted *targets[2 * WORDS];
    long count; /* ways that this processor can go */
    uintptr_t words[WITH_AVX512][WORDS];
};

static long count_ways(void)
{
    static int is_told;
    long count = BASIC;
    if (__builtin_cpu_supports("avx2"))
        count = __builtin_cpu_supports("avx512f") ? WITH_AVX512 : WITH_AVX2;
    if (count < WITH_AVX512 && !is_told++)
        fprintf(stderr, "SKIPPED: this processor has no %s, so its permutes are not tested\n",
                count == BASIC ? "AVX2" : "AVX-512");
    return count;
}

static void set_orders(struct lanes *l)
{
    for (int i = 0; i < WORDS; i++) {
        l->how.evens[i] = i % 2 ? 0 : (uint64_t)number(-1);
        l->how.backwards[i] = (uint64_t)number(WORDS - 1 - i);
        l->how.crossed[i] = i % 2 ? 0 : (uint64_t)number(2);
        l->how.halves[i] = (uint32_t)number(6 - i / 2 * 2 + i % 2);
    }
    for (int i = 0; i < 16; i++)
        l->how.bytes[i] = (uint8_t)number((i + 8) % 16);
}

/* The index, among the words of `a` and `b`, of what a way has stored to word i. */
static int source_of(const struct way *way, int i)
{
    switch (way->order) {
    case CHOSEN:
        return i % 2 ? WORDS + i : i;
    case BACKWARDS:
        return way->words - 1 - i;
    case CROSSED:
        return i ^ 1;
    default:
        return i;
    }
}

STRUCTURE(permuted)
static void build_permuted(pm_container *c, int step)
{
    struct permuted *r = root_bytes(c, step, sizeof *r);
    struct lanes l = {0};
    set_orders(&l);
    for (int i = 0; i < 2 * WORDS; i++) {
        has_pointer(&r->targets[i]);
        r->targets[i] = (struct permuted *)&r->targets[(i + step) % (2 * WORDS)];
        (i < WORDS ? l.a : l.b)[i % WORDS] = (uintptr_t)r->targets[i];
    }
    r->count = count_ways();
    for (long way = 0; way < r->count; way++) {
        for (int i = 0; i < ways[way].words; i++)
            has_pointer(&r->words[way][i]);
        ways[way].store(r->words[way], &l);
    }
}
static const char *check_permuted(pm_container *c)
{
    static char wrong[64];
    const struct permuted *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->count == count_ways());
    for (long way = 0; way < r->count; way++)
        for (int i = 0; i < ways[way].words; i++)
            if (r->words[way][i] != (uintptr_t)r->targets[source_of(&ways[way], i)]) {
                snprintf(wrong, sizeof wrong, "way %ld, word %d", way, i);
                return wrong;
            }
    for (int i = 0; i < 2 * WORDS; i++)
        REQUIRE_THAT_IT_HAS(r->targets[i] == (void *)&r->targets[(i + STEPS - 1) % (2 * WORDS)]);
    return NULL;
}
