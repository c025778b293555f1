// A container that fills a small disk: what is stored there, in every line.
#ifndef TESTS_SYSTEM_FULL_HPP
#define TESTS_SYSTEM_FULL_HPP

#include "common/fixture.hpp"

namespace test::full
{

constexpr uint64_t MiB = 1 << 20, PAGES = 1000;

inline pm_options how()
{
    pm_options o = small();
    o.max_size = 256 * MiB;
    return o;
}

// Every line, so that the record is longer than all that the log may take, or has chunks for.
inline void store(pm_container *c, uint64_t value)
{
    volatile uint64_t *words = &page_word(c, 0);
    for (uint64_t line = 0; line < PAGES * 64; line++)
        words[line * 8] = value;
}

inline bool holds(pm_container *c, uint64_t value)
{
    volatile uint64_t *words = &page_word(c, 0);
    for (uint64_t line = 0; line < PAGES * 64; line++)
        if (words[line * 8] != value)
            return false;
    return true;
}

} // namespace test::full

#endif
