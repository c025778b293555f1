// A reservation of the undo engine beside allocations: what it has promised is there at the commit.
#include "common/fixture.hpp"

#include <cerrno>
#include <vector>

// The record lists each page that gets its first object, in slabs that were there before, too. What
// pm_reserve() has promised holds, even if everything else is taken before the commit.
TEST_CASE("a reservation has room for the pages of new objects in old slabs")
{
    constexpr uint64_t SEGMENT = 64 << 10, SLABS = 320, EACH = 15; // 15 pages in each
    test::Directory directory;
    pm_options how = test::small();
    how.max_size = (SLABS + 20) * SEGMENT;
    how.concurrent_stores = true; // so no page stays open, and the log stays small
    test::Container c = test::open(directory / "c.pm", how);
    std::vector<void *> objects;
    for (uint64_t i = 0; i < SLABS * EACH; i++) {
        objects.push_back(pm_malloc(c.get(), 4096));
        REQUIRE(objects.back());
        if (i % 1000 == 0)
            REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (uint64_t i = 0; i < objects.size(); i++) {
        if (i % EACH != 0)
            REQUIRE_OK(pm_free(objects[i]));
        if (i % 1000 == 0)
            REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_commit(c.get()));
    c.reset(); // so that its log is as small as can be
    c = test::open(directory / "c.pm", how);
    for (uint64_t i = 0; i < SLABS * (EACH - 1); i++)
        REQUIRE(pm_malloc(c.get(), 4096));
    REQUIRE_OK(pm_reserve(c.get(), SEGMENT));
    while (pm_malloc(c.get(), SEGMENT))
        ;
    REQUIRE(errno == ENOSPC);
    REQUIRE_OK(pm_commit(c.get()));
}
