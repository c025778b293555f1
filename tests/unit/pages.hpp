// Large values, and which of their pages are mapped from the log's file. The container has chunks of 1 MiB, since
// only these have parts of whole pages.
#ifndef TESTS_UNIT_PAGES_HPP
#define TESTS_UNIT_PAGES_HPP

#include "common/format.hpp"
#include "unit/values.hpp"

#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

namespace values
{

constexpr size_t LINE = 64, PAGE = 4096, MiB = 1 << 20;

inline pm_options options(unsigned flags = PM_CREATE)
{
    pm_options how = test::options(flags | PM_MOVABLE); // so that it can be compacted
    how.segment_size = MiB;
    how.max_size = 256 * MiB;
    return how;
}

inline void *store(pm_container *c, const std::string &value)
{
    void *object = pm_malloc(c, value.size());
    REQUIRE(object);
    REQUIRE_OK(pm_dirty(object, value.size()));
    memcpy(object, value.data(), value.size());
    return object;
}

inline void *put(pm_container *c, const std::string &value)
{
    void *object = pm_put(c, value.data(), value.size());
    REQUIRE(object);
    return object;
}

inline void change(char *byte)
{
    REQUIRE_OK(pm_dirty(byte, 1));
    *byte ^= 0x55;
}

// Pages of an object that are mapped from the container's file.
inline size_t mapped(const char *object, size_t size, const std::string &path)
{
    struct stat st = {};
    REQUIRE(stat(path.c_str(), &st) == 0);
    std::ifstream maps("/proc/self/maps");
    size_t pages = 0;
    for (std::string line; std::getline(maps, line);) {
        uintptr_t from = 0, to = 0;
        ino_t inode = 0;
        std::string rights, offset, device;
        char dash = 0;
        std::istringstream(line) >> std::hex >> from >> dash >> to >> rights >> offset >> device >>
            std::dec >> inode;
        if (inode != st.st_ino)
            continue;
        from = std::max(from, (uintptr_t)object);
        to = std::min(to, (uintptr_t)object + size);
        pages += from < to ? (to - from) / PAGE : 0;
    }
    return pages;
}

inline void crash(test::Container &c, const std::string &path)
{
    values::crash(c, path, options(0));
}

inline bool has(pm_container *c, int i, const std::string &value)
{
    const Root *root = root_of(c);
    return root->size[i] == value.size() &&
           memcmp(root->object[i], value.data(), value.size()) == 0;
}

} // namespace values

#endif
