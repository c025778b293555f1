// A program's life with a container, and what the container must then hold: random transactions over an
// array of objects, from a seed. The same life can be lived without a container, for a model alone.
#ifndef TESTS_HOSTILE_LIFE_HPP
#define TESTS_HOSTILE_LIFE_HPP

#include "common/fixture.hpp"

#include <array>
#include <cstring>
#include <random>

namespace hostile
{

class Life
{
  public:
    static constexpr size_t SLOTS = 64;

    explicit Life(uint64_t seed) : random_(seed) {}

    // The root of a new container.
    static void begin(pm_container *c)
    {
        void *root = pm_calloc(c, SLOTS, sizeof(char *));
        test::child_require(root && pm_setroot(c, root, 0) == 0 && pm_commit(c) == 0, "a root");
        for (size_t i = 0; i < SLOTS; i++)
            test::child_require(pm_mark_pointer(&slots(c)[i]) == 0, "marked");
        test::child_require(pm_commit(c) == 0, "marks");
    }

    // The changes of one transaction, which is not committed. Without a container the model's only.
    bool change(pm_container *c)
    {
        for (uint64_t n = 1 + random_() % 3; n > 0; n--)
            if (!change_one(c))
                return false;
        return true;
    }

    bool matches(pm_container *c) const
    {
        if (!slots(c) || pm_usable_size(slots(c)) < SLOTS * sizeof(char *))
            return false;
        for (size_t i = 0; i < SLOTS; i++)
            if (!matches(slots(c)[i], objects_[i]))
                return false;
        return true;
    }

  private:
    struct Object {
        size_t size; // 0: none
        uint64_t stamp;
    };

    static char **slots(pm_container *c) { return static_cast<char **>(pm_getroot(c)); }

    static void fill(char *p, const Object &o)
    {
        memset(p, (int)(o.stamp & 0xff), o.size);
        memcpy(p, &o.stamp, sizeof o.stamp);
    }

    static bool matches(const char *p, const Object &o)
    {
        if (o.size == 0 || !p)
            return o.size == 0 && !p;
        // All bytes behind the stamp are the same.
        const char *rest = p + sizeof o.stamp;
        const size_t bytes = o.size - sizeof o.stamp;
        return pm_usable_size(p) >= o.size && memcmp(p, &o.stamp, sizeof o.stamp) == 0 &&
               *rest == (char)o.stamp && memcmp(rest, rest + 1, bytes - 1) == 0;
    }

    bool change_one(pm_container *c)
    {
        static constexpr size_t SIZES[] = {16, 100, 100, 100, 700, 700, 5000, 40000};
        size_t i = random_() % SLOTS;
        uint64_t stamp = random_(), what = random_() % 3;
        Object &o = objects_[i];
        if (o.size == 0) {
            o = {SIZES[random_() % std::size(SIZES)], stamp};
            if (c && !(slots(c)[i] = static_cast<char *>(pm_malloc(c, o.size))))
                return false;
        } else if (what == 0) {
            o = {0, 0};
            if (c && pm_free(slots(c)[i]) != 0)
                return false;
            if (c)
                slots(c)[i] = nullptr;
        } else {
            o.stamp = stamp;
        }
        if (c && o.size != 0)
            fill(slots(c)[i], o);
        return true;
    }

    std::mt19937_64 random_;
    std::array<Object, SLOTS> objects_{};
};

} // namespace hostile

#endif
