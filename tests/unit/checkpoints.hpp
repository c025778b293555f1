// Containers of the log engine with checkpoints, and a model of what they have.
#ifndef TESTS_UNIT_CHECKPOINTS_HPP
#define TESTS_UNIT_CHECKPOINTS_HPP

#include "common/format.hpp"
#include "common/full_disk.hpp"

extern "C" {
#include "container/format_log.h"
}

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <vector>

namespace checkpoints
{

constexpr uint64_t KiB = 1 << 10, MiB = 1 << 20, CHUNK = 64 * KiB, LINE = 64;

inline pm_options every(uint64_t bytes, unsigned flags = 0)
{
    pm_options o = test::small(flags | PM_MOVABLE); // a copy is opened beside it
    o.checkpoint_bytes = bytes;
    return o;
}

inline pm_options none(unsigned flags = 0)
{
    pm_options o = test::small(flags | PM_MOVABLE);
    o.checkpoint_bytes = o.private_max = 0; // whatever the environment says
    return o;
}

// The line of the file where the root of the named checkpoint is; 0: none is named.
inline uint64_t root_of(const std::string &path)
{
    const uint64_t word = test::read_word(path, FORMAT_STATE + offsetof(format_state, checkpoint));
    return word == 0 ? 0 : seal_payload(word);
}

// Objects of all sizes, and a copy of what they have.
struct Model {
    static constexpr size_t COUNT = 48;
    struct Root {
        char *objects[COUNT];
        size_t sizes[COUNT];
    };
    std::vector<std::string> copy{COUNT};
    std::mt19937_64 random;

    explicit Model(uint64_t seed) : random(seed) {}
    uint64_t below(uint64_t n) { return random() % n; }

    static Root *root(pm_container *c) { return static_cast<Root *>(pm_getroot(c)); }
    static void begin(pm_container *c)
    {
        auto *r = static_cast<Root *>(pm_calloc(c, 1, sizeof(Root)));
        REQUIRE(r);
        REQUIRE_OK(pm_mark_pointers(r, COUNT));
        REQUIRE_OK(pm_setroot(c, r, 0));
        REQUIRE_OK(pm_commit(c));
    }
    void set(pm_container *c, size_t i, char *object, size_t size)
    {
        REQUIRE_OK(pm_dirty(root(c), sizeof(Root)));
        root(c)->objects[i] = object;
        root(c)->sizes[i] = size;
    }
    // Allocate an object, store to a part of one, or free one. A new object has what the program sees there,
    // stored to or not. If memory is bounded, what was not stored to may change before the commit.
    bool stores_all = false;
    void step(pm_container *c)
    {
        const size_t i = below(COUNT);
        char *object = root(c)->objects[i];
        if (!object) {
            const size_t size = below(8) == 0 ? 1 + below(100 * KiB) : 1 + below(400);
            object = static_cast<char *>(pm_malloc(c, size));
            REQUIRE(object);
            set(c, i, object, size);
            if (stores_all) {
                REQUIRE_OK(pm_dirty(object, size));
                memset(object, (char)random(), size);
            }
            copy[i].assign(object, size);
            if (below(3) == 0)
                return;
        }
        const size_t size = root(c)->sizes[i];
        if (below(4) == 0) {
            REQUIRE_OK(pm_free(object));
            set(c, i, nullptr, 0);
            copy[i].clear();
            return;
        }
        const size_t at = below(size),
                     n = 1 + below(std::min<size_t>(size - at, below(4) ? 16 : 5000));
        REQUIRE_OK(pm_dirty(object + at, n));
        memset(object + at, (char)random(), n);
        copy[i].assign(object, size);
    }
    void holds(pm_container *c) const
    {
        for (size_t i = 0; i < COUNT; i++) {
            const char *object = root(c)->objects[i];
            REQUIRE((object != nullptr) == !copy[i].empty());
            if (object && memcmp(object, copy[i].data(), copy[i].size()) != 0)
                FAIL("object " << i << " of " << copy[i].size() << " bytes");
        }
        REQUIRE_OK(pm_check(c));
    }
};

struct Subject {
    test::Directory directory;
    const std::string path = directory / "c.pm", other = directory / "other.pm";
    Model model;
    pm_options how;
    test::Container c;

    explicit Subject(uint64_t interval, uint64_t seed = 1, uint64_t private_max = 0)
        : model(seed), how(every(interval))
    {
        how.private_max = private_max;
        model.stores_all = private_max != 0;
        pm_options create = how;
        create.flags |= PM_CREATE;
        c = test::open(path, create);
        Model::begin(c.get());
    }
    // Begin anew, in a container as an older libpm made it.
    void become(uint32_t version)
    {
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
        c = test::open(path, none(PM_CREATE));
        Model::begin(c.get());
        c.reset();
        test::set_version(path, version);
        c = test::open(path, how);
    }
    void run(int commits)
    {
        for (int i = 0; i < commits; i++) {
            for (uint64_t n = 1 + model.below(4); n > 0; n--)
                model.step(c.get());
            REQUIRE_OK(pm_commit(c.get()));
        }
    }
    // What a crash would leave now, as bytes.
    void crash_to_other() const { test::write_file(other, test::read_file(path)); }
    // Open it: how many bytes of records are read.
    uint64_t other_holds(pm_options options) const
    {
        options.flags |= PM_ACCEPT_COPY;
        test::Container o = test::open(other, options);
        model.holds(o.get());
        return test::stats(o.get()).recovery_bytes;
    }
    void reopen()
    {
        c.reset();
        c = test::open(path, how);
    }
};

} // namespace checkpoints

#endif
