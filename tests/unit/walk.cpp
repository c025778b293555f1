// Looking at what a container has: every object, against a model of what was allocated, and every
// mapped pointer of a range.
#include "common/fixture.hpp"

#include <cerrno>
#include <map>
#include <random>

namespace
{

using Objects = std::map<void *, size_t>;

Objects objects(pm_container *c)
{
    Objects all;
    size_t size;
    void *last = nullptr;
    for (void *p = nullptr; (p = pm_next_object(c, p, &size)); last = p) {
        REQUIRE(p > last);
        REQUIRE(pm_usable_size(p) == size);
        all[p] = size;
    }
    return all;
}

} // namespace

TEST_CASE("every object is met once, in order of address")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    REQUIRE(objects(c.get()).empty());
    std::mt19937 random(1);
    Objects expected;
    // Around the largest of a slab, and around whole segments, which large objects take.
    const size_t sizes[] = {1, 16, 500, 8192, 8193, 30000, 40000, 65535, 65536, 65537, 200000};
    for (int i = 0; i < 600; i++) {
        if (random() % 3 == 0 && !expected.empty()) {
            auto victim = std::next(expected.begin(), (long)(random() % expected.size()));
            REQUIRE_OK(pm_free(victim->first));
            expected.erase(victim);
        } else {
            void *p = pm_malloc(c.get(), sizes[random() % std::size(sizes)]);
            REQUIRE(p);
            expected[p] = pm_usable_size(p);
        }
        if (i % 50 == 0)
            REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE(objects(c.get()) == expected);
    REQUIRE_OK(pm_commit(c.get()));

    SECTION("as the open transaction has them")
    {
        Objects before = expected;
        REQUIRE_OK(pm_free(expected.begin()->first));
        expected.erase(expected.begin());
        REQUIRE(objects(c.get()) == expected);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(objects(c.get()) == before);
        REQUIRE_OK(pm_clear(c.get()));
        REQUIRE(objects(c.get()).empty());
    }
    SECTION("and by readers too")
    {
        c.reset();
        c = test::open(path, test::options(PM_READONLY));
        REQUIRE(objects(c.get()) == expected);
    }
    SECTION("from wherever one is")
    {
        auto [first, size] = *expected.begin();
        auto second = std::next(expected.begin());
        REQUIRE(pm_next_object(c.get(), first, nullptr) == second->first);
        REQUIRE(pm_next_object(c.get(), (char *)first + size - 1, nullptr) == second->first);
        REQUIRE_OK(pm_free(first)); // may go while one is there
        REQUIRE(pm_next_object(c.get(), first, nullptr) == second->first);
        errno = 0;
        size_t untouched = 77;
        REQUIRE_FALSE(pm_next_object(c.get(), expected.rbegin()->first, &untouched));
        REQUIRE((errno == 0 && untouched == 77));
    }
    SECTION("but not from elsewhere")
    {
        int elsewhere;
        REQUIRE_FALSE(pm_next_object(c.get(), &elsewhere, nullptr));
        REQUIRE(errno == EINVAL);
        REQUIRE_THAT(pm_errormsg(), Catch::Contains("not in the container"));
        REQUIRE_FALSE(pm_next_object(nullptr, nullptr, nullptr));
        REQUIRE(errno == EINVAL);
    }
}

TEST_CASE("the next mapped pointer of a range")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    void **p = static_cast<void **>(pm_calloc(c.get(), 100, sizeof *p));
    const void *base = test::stats(c.get()).base;
    const char *end = static_cast<const char *>(base) + test::small().max_size;
    REQUIRE_FALSE(pm_next_pointer(p, end)); // there is no map at all
    REQUIRE_OK(pm_mark_pointers(p + 10, 2));
    REQUIRE(pm_next_pointer(base, end) == p + 10);
    REQUIRE(pm_next_pointer(p + 10, p + 11) == p + 10);
    REQUIRE(pm_next_pointer((char *)(p + 10) + 1, end) == p + 11);
    REQUIRE_FALSE(pm_next_pointer(p + 12, end));
    errno = 0;
    REQUIRE_FALSE(pm_next_pointer(p, p + 10));
    REQUIRE_FALSE(pm_next_pointer(p + 10, p + 10));
    REQUIRE(errno == 0);
    REQUIRE_FALSE(pm_next_pointer(p + 10, p + 9));
    REQUIRE(errno == EINVAL);
    REQUIRE_FALSE(pm_next_pointer(base, end + 1));
    REQUIRE(errno == EINVAL);
    REQUIRE_FALSE(pm_next_pointer(&errno, end));
    REQUIRE(errno == EINVAL);
}
