// A commit of the log engine logs the lines that differ from home, which is memory. So home must have what the
// log has. Here parts of home are cleared or cut off, and then taken for another object.
#include "common/process.hpp"

#include <cstring>

namespace
{

constexpr size_t segment = 64 << 10;

// An object of one segment, all bytes `letter`, committed.
char *filled(const test::Container &c, char letter)
{
    auto *p = static_cast<char *>(pm_malloc(c.get(), segment));
    REQUIRE(p);
    memset(p, letter, segment);
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    REQUIRE_OK(pm_commit(c.get()));
    return p;
}

void free_root(const test::Container &c)
{
    void *p = pm_getroot(c.get());
    REQUIRE_OK(pm_setroot(c.get(), nullptr, 0));
    REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(c.get()));
}

// A new object where the old one was; its bytes become zero in a transaction of their own.
void require_zeros_last(test::Container &c, const std::string &path, const char *there)
{
    auto *p = static_cast<char *>(pm_malloc(c.get(), segment));
    REQUIRE(p == there);
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    REQUIRE_OK(pm_commit(c.get()));
    memset(p, 0, segment);
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options(PM_MOVABLE));
    p = static_cast<char *>(pm_getroot(c.get()));
    for (size_t i = 0; i < segment; i++)
        REQUIRE(p[i] == 0);
    REQUIRE_OK(pm_check(c.get()));
}

} // namespace

TEST_CASE("a small container takes few addresses")
{
    test::Directory directory;
    pm_options options = test::small(PM_CREATE);
    options.max_size = UINT64_C(64) << 20;
    test::Container first = test::open(directory / "first.pm", options); // libpm's addresses come with it
    const uint64_t before = test::address_bytes();
    REQUIRE(before > 0);
    test::Container c = test::open(directory / "c.pm", options);
    // Three mappings of what max_size allows, the file's, and the tables.
    REQUIRE((test::address_bytes() - before) >> 20 < 4 * 64 + 8 * 64 + 4096);
}

TEST_CASE("memory that was cleared for a bitmap, and rolled back")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    char *there = filled(c, 'x');
    free_root(c);
    REQUIRE(pm_malloc(c.get(), 16));
    REQUIRE_OK(pm_rollback(c.get()));
    require_zeros_last(c, path, there);
}

TEST_CASE("memory that was cut off, and came back")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    char *there = filled(c, 'x');
    free_root(c);
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    require_zeros_last(c, path, there);
}
