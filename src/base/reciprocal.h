/*
 * Division by a constant, done by a multiplication. It is exact for dividends below 2^26, the granules of
 * the largest segment (Granlund and Montgomery, PLDI 1994, section 4).
 */
#ifndef PM_BASE_RECIPROCAL_H
#define PM_BASE_RECIPROCAL_H

#include "base/bits.h"

struct reciprocal {
    uint64_t factor;
    uint32_t shift;
};

static inline struct reciprocal reciprocal_of(uint32_t divisor)
{
    uint32_t shift = 26 + (divisor > 1 ? 32 - (uint32_t)__builtin_clz(divisor - 1) : 0);
    return (struct reciprocal){divide_up(UINT64_C(1) << shift, divisor), shift};
}

static inline uint32_t divide(uint32_t dividend, struct reciprocal by)
{
    return (uint32_t)(dividend * by.factor >> by.shift);
}

#endif
