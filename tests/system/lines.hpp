// One value in all lines of a container's pages, for tests in which writes of the log engine fail.
#ifndef TESTS_SYSTEM_LINES_HPP
#define TESTS_SYSTEM_LINES_HPP

#include "common/fixture.hpp"

#include <algorithm>

namespace lines
{

constexpr uint64_t PAGES = 80; // three chunks full of deltas

// The first four words of all lines of some pages: they get deltas.
inline void store(pm_container *c, uint64_t value, uint64_t pages = PAGES)
{
    for (uint64_t page = 0; page < pages; page++)
        for (uint64_t line = 0; line < 64; line++)
            std::fill_n(&test::page_word(c, page) + line * 8, 4, value);
}

// The value that all lines have; UINT64_MAX if they differ.
inline uint64_t value_of(pm_container *c, uint64_t pages = PAGES)
{
    const uint64_t value = test::page_word(c, 0);
    for (uint64_t page = 0; page < pages; page++)
        for (uint64_t line = 0; line < 64; line++)
            if ((&test::page_word(c, page))[line * 8] != value)
                return UINT64_MAX;
    return value;
}

} // namespace lines

#endif
