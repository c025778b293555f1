// Visits the objects of a container, and the pointers of an object.
#ifndef PM_LOOK_WALK_HPP
#define PM_LOOK_WALK_HPP

#include <libpm.hpp>

namespace look
{

inline struct pm_stats stats_of(pm_container *c)
{
    struct pm_stats stats = {};
    stats.size = sizeof stats;
    if (pm_stats(c, &stats) != 0)
        throw pm::error();
    return stats;
}

// Call `visit` with the start and the usable bytes of every object, in order of address.
template <class Visit> void each_object(pm_container *c, Visit visit)
{
    size_t size;
    for (void *p = nullptr; (p = pm_next_object(c, p, &size));)
        visit(static_cast<const char *>(p), size);
}

// Call `visit` with every mapped pointer in an object, in order of address.
template <class Visit> void each_pointer(const char *object, size_t size, Visit visit)
{
    const char *at = object, *end = object + size;
    for (void **field; (field = pm_next_pointer(at, end));
         at = reinterpret_cast<const char *>(field + 1))
        visit(field);
}

} // namespace look

#endif
