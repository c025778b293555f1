/*
 * Sealed words: 56 bits of payload and 8 bits of check in one word. Memory writes a word atomically. So
 * a word can be changed in place, and still prove that nobody flipped its bits.
 * Zero is the sealed form of zero, so that zeroed space is valid.
 */
#ifndef PM_BASE_SEAL_H
#define PM_BASE_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#define SEAL_BITS 56

/* The check is the top byte of a product. Any one flipped bit of the payload changes the check, because
 * no eight adjacent bits of the multiplier are all equal (tests/unit/words.cpp flips each bit). */
static inline uint64_t seal_check(uint64_t payload)
{
    return payload * UINT64_C(0x9E3779B97F4A7C15) >> SEAL_BITS;
}

static inline uint64_t seal(uint64_t payload)
{
    return payload | seal_check(payload) << SEAL_BITS;
}

static inline uint64_t seal_payload(uint64_t word)
{
    return word & ((UINT64_C(1) << SEAL_BITS) - 1);
}

static inline bool seal_is_valid(uint64_t word)
{
    return word >> SEAL_BITS == seal_check(seal_payload(word));
}

#endif
