/* Arithmetic that every layer needs: pages, powers of two, ranges of bits. */
#ifndef PM_BASE_BITS_H
#define PM_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define PM_PAGE_SHIFT 12
#define PM_PAGE       ((uint64_t)1 << PM_PAGE_SHIFT) /* bytes; the format's page, see docs/format.md */
#define PM_LINE       64u                            /* bytes of a cache line */
#define PM_LINE_WORDS 8u                             /* words of a cache line, or pointers */
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

/* Bits [first, end) of a word, of which there is at least one. */
static inline uint64_t bits_between(uint64_t first, uint64_t end)
{
    return ~(uint64_t)0 << first & ~(uint64_t)0 >> (64 - end);
}

/* One more; for a counter that one thread at a time changes, and others read by counted(). */
static inline void count(uint64_t *counter)
{
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static inline uint64_t counted(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
