// pm_compact(): whatever it moves, all pointers lead to what they led to; and how much it gains.
#include "unit/web.hpp"

#include "common/fixture.hpp"
#include "common/format.hpp"

#include <cerrno>
#include <filesystem>
#include <map>

namespace
{

pm_options how()
{
    web::recorded = test::mode() == "stores";
    return test::small(PM_CREATE | PM_MOVABLE);
}

struct pm_compacted compact(pm_container *c, pm_moved *moved = nullptr, void *context = nullptr)
{
    struct pm_compacted result{};
    result.size = sizeof result;
    REQUIRE_OK(pm_compact(c, moved, context, &result));
    return result;
}

// A container in which of so many cells every `nth` has stayed.
test::Container fragmented(const std::string &path, uint64_t cells, uint64_t nth)
{
    test::Container c = test::open(path, how());
    web::Random random(cells);
    web::begin(c.get());
    web::add_some(c.get(), random, cells);
    REQUIRE_OK(pm_commit(c.get()));
    web::remove(c.get(), [&](const web::Cell *) { return random() % nth != 0; });
    REQUIRE_OK(pm_commit(c.get()));
    return c;
}

} // namespace

TEST_CASE("what is left moves together, and the file becomes smaller")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    uint64_t nth = GENERATE(1, 2, 4, 10, 1000);
    INFO("every " << nth << "th");
    test::Container c = fragmented(path, 3000, nth);
    struct pm_compacted done = compact(c.get());
    web::check(c.get());
    CAPTURE(done.objects_moved, done.bytes_moved, done.pointers_redirected, done.segments_freed,
            done.commits, done.before.data_bytes, done.after.data_bytes, done.before.file_bytes,
            done.after.file_bytes, done.before.fragmentation, done.after.fragmentation);
    REQUIRE(done.before.object_bytes == done.after.object_bytes);
    REQUIRE(done.after.data_bytes <= done.before.data_bytes);
    REQUIRE(done.after.file_bytes == std::filesystem::file_size(path));
    REQUIRE(test::stats(c.get()).segments_free == 0);
    if (nth > 1) {
        REQUIRE(done.objects_moved > 0);
        REQUIRE(done.pointers_redirected > done.objects_moved);
        REQUIRE(done.segments_freed > 0);
        REQUIRE(done.after.file_bytes < done.before.file_bytes);
    }
    SECTION("once")
    {
        struct pm_compacted again = compact(c.get());
        REQUIRE(again.objects_moved == 0);
        REQUIRE(again.after.file_bytes == done.after.file_bytes);
    }
    SECTION("for good")
    {
        c.reset();
        c = test::open(path, how());
        REQUIRE_FALSE(test::stats(c.get()).recovered);
        web::check(c.get());
    }
    SECTION("and can grow again")
    {
        web::Random random(7);
        for (int i = 0; i < 5; i++) {
            web::add_some(c.get(), random, 500);
            REQUIRE_OK(pm_commit(c.get()));
            web::check(c.get());
        }
        c.reset();
        c = test::open(path, how());
        web::check(c.get());
    }
}
