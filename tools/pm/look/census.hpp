// Counts the objects of each size.
#ifndef PM_LOOK_CENSUS_HPP
#define PM_LOOK_CENSUS_HPP

#include <cstddef>
#include <cstdint>
#include <map>

namespace look
{

struct Census {
    std::map<size_t, uint64_t> objects; // usable size -> how many objects
    uint64_t count = 0, bytes = 0;

    void add(size_t size)
    {
        objects[size]++;
        count++;
        bytes += size;
    }
};

} // namespace look

#endif
