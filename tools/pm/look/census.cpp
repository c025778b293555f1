#include "pm/look/census.hpp"

namespace look
{

Census take_census(pm_container *c)
{
    Census census;
    size_t size;
    for (void *p = nullptr; (p = pm_next_object(c, p, &size));) {
        census.objects[size]++;
        census.count++;
        census.bytes += size;
        const char *at = static_cast<const char *>(p), *end = at + size;
        for (void **field; (field = pm_next_pointer(at, end));
             at = reinterpret_cast<const char *>(field + 1))
            census.pointers++;
    }
    return census;
}

} // namespace look
