// What the pointer map of an open container says: offsets in the file.
#ifndef TESTS_MAPPED_HPP
#define TESTS_MAPPED_HPP

#include "common/fixture.hpp"

#include <set>

namespace test
{

using Offsets = std::set<uint64_t>;

inline const char *base_of(pm_container *c)
{
    return static_cast<const char *>(stats(c).base);
}

inline uint64_t offset_of(pm_container *c, const void *p)
{
    return (uint64_t)(static_cast<const char *>(p) - base_of(c));
}

inline Offsets mapped(pm_container *c)
{
    Offsets all;
    const char *base = base_of(c), *at = base, *end = base;
    size_t size;
    for (const void *p = nullptr; (p = pm_next_object(c, p, &size));)
        end = static_cast<const char *>(p) + size;
    for (void **p; (p = pm_next_pointer(at, end)); at = reinterpret_cast<const char *>(p + 1))
        all.insert((uint64_t)(reinterpret_cast<const char *>(p) - base));
    return all;
}

} // namespace test

#endif
