/* Arithmetic that every layer needs: pages, powers of two, ranges of bits. */
#ifndef PM_BASE_BITS_H
#define PM_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define PM_PAGE_SHIFT 12
#define PM_PAGE       ((uint64_t)1 << PM_PAGE_SHIFT) /* bytes; the format's page, see docs/format.md */
#define PM_LINE       64u                            /* bytes of a cache line */
#define PM_PAGE_LINES (PM_PAGE / PM_LINE)            /* cache lines of a page */

static inline uint64_t align_down(uint64_t value, uint64_t power)
{
    return value & ~(power - 1);
}

static inline uint64_t align_up(uint64_t value, uint64_t power)
{
    return align_down(value + power - 1, power);
}

static inline bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static inline uint64_t divide_up(uint64_t value, uint64_t divisor)
{
    return (value + divisor - 1) / divisor;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Bits [first, end) of the word that holds bits [64 * word, 64 * word + 64). */
static inline uint64_t bits_of_word(uint64_t word, uint64_t first, uint64_t end)
{
    uint64_t low = word * 64, mask = ~(uint64_t)0;
    if (first > low)
        mask = first - low < 64 ? mask << (first - low) : 0;
    if (end < low + 64)
        mask = end > low ? mask & (~(uint64_t)0 >> (low + 64 - end)) : 0;
    return mask;
}

/* Whether any of bits [first, first + count) is set; count is from 1 to 64. */
static inline bool bits_any_of_few(const uint64_t *words, uint64_t first, uint32_t count)
{
    const uint64_t *word = words + first / 64;
    uint32_t shift = first % 64;
    uint64_t bits = word[0] >> shift;
    if (shift + count > 64)
        bits |= word[1] << (64 - shift);
    return bits << (64 - count);
}

/* Whether all of bits [first, end) are set. */
static inline bool bits_all(const uint64_t *words, uint64_t first, uint64_t end)
{
    for (uint64_t w = first / 64; w * 64 < end; w++)
        if (~words[w] & bits_of_word(w, first, end))
            return false;
    return true;
}

/* Whether any of bits [first, end) is set. */
static inline bool bits_any(const uint64_t *words, uint64_t first, uint64_t end)
{
    for (uint64_t w = first / 64; w * 64 < end; w++)
        if (words[w] & bits_of_word(w, first, end))
            return true;
    return false;
}

#endif
