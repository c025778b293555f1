// Up to 16 values in a container, for tests of large objects.
#ifndef TESTS_UNIT_VALUES_HPP
#define TESTS_UNIT_VALUES_HPP

#include "common/fixture.hpp"

#include <cstring>
#include <random>

namespace values
{

struct Root {
    char *object[16];
    size_t size[16];
};

inline Root *root_of(pm_container *c)
{
    return static_cast<Root *>(pm_getroot(c));
}

// A new root, and a commit. Its pointers are declared.
inline Root *make_root(pm_container *c)
{
    auto *root = static_cast<Root *>(pm_malloc_typed(c, PM_TYPE(Root, object), 1));
    REQUIRE(root);
    REQUIRE_OK(pm_setroot(c, root, 0));
    REQUIRE_OK(pm_commit(c));
    return root;
}

// Announced, for tests under either tracker.
inline void set(Root *root, int i, void *object, size_t size)
{
    REQUIRE_OK(pm_dirty(root, sizeof *root));
    root->object[i] = static_cast<char *>(object);
    root->size[i] = size;
}

inline std::string bytes_of(size_t size, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::string bytes(size + sizeof(uint64_t), 0);
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        const uint64_t word = random();
        memcpy(&bytes[i], &word, sizeof word);
    }
    bytes.resize(size);
    return bytes;
}

// What a crash leaves: the file as it is now. Objects keep their addresses.
inline void crash(test::Container &c, const std::string &path, pm_options how)
{
    const std::string bytes = test::read_file(path);
    c.reset();
    test::write_file(path, bytes);
    how.flags |= PM_ACCEPT_COPY;
    c = test::open(path, how);
    REQUIRE_OK(pm_check(c.get()));
}

} // namespace values

#endif
