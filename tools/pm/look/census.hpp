// What objects a container has, by size.
#ifndef PM_LOOK_CENSUS_HPP
#define PM_LOOK_CENSUS_HPP

#include <libpm.h>

#include <cstdint>
#include <map>

namespace look
{

struct Census {
    std::map<size_t, uint64_t> objects; // how many of each usable size
    uint64_t count = 0, bytes = 0;
    uint64_t pointers = 0; // mapped
};

// Linear in the container.
Census take_census(pm_container *c);

} // namespace look

#endif
