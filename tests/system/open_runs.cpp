// Marks open pages one by one, until the kernel's maps would run out. Then libpm closes all pages, and opens
// longer runs. So a program that stores to scattered pages again and again soon closes none.
#include "common/fixture.hpp"

#include <cstring>

namespace
{

constexpr size_t PAGE = 4096, RUNS = 20000; // more than two times the 8192 runs that may be open
constexpr size_t BYTES = 2 * RUNS * PAGE;   // each run is one page, and the next page stays closed

// To every other page, with some commits.
void store_everywhere(pm_container *c, char *object, int value)
{
    for (size_t i = 0; i < RUNS; i++) {
        memset(object + 2 * i * PAGE, value, 8);
        if (i % 1000 == 999)
            REQUIRE_OK(pm_commit(c));
    }
}

} // namespace

TEST_CASE("stores to scattered pages close no pages in the long run")
{
    test::Directory directory;
    pm_options how = test::options(PM_CREATE);
    how.max_size = 1 << 30;
    how.private_max = 1 << 30;
    test::Container c = test::open(directory / "c.pm", how);
    auto *object = static_cast<char *>(pm_malloc(c.get(), BYTES));
    REQUIRE(object);
    REQUIRE_OK(pm_setroot(c.get(), object, 0));
    REQUIRE_OK(pm_commit(c.get()));
    store_everywhere(c.get(), object, 1);
    const auto first = test::stats(c.get());
    REQUIRE(first.pages_evicted >= 8192);
    store_everywhere(c.get(), object, 2);
    const auto second = test::stats(c.get());
    store_everywhere(c.get(), object, 3);
    const auto third = test::stats(c.get());
    CHECK(third.pages_evicted == second.pages_evicted);
    // Pages that were opened with their neighbours have no copy, and count as none.
    CHECK(third.pages_private <= RUNS + BYTES / (2 << 20) + 16);
    REQUIRE_OK(pm_check(c.get()));

    // A page that is open with its neighbour takes stores, and gives them back.
    object[PAGE] = 4;
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(object[PAGE] == 0);
    object[PAGE] = 5;
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(directory / "c.pm", how);
    object = static_cast<char *>(pm_getroot(c.get()));
    REQUIRE(object[PAGE] == 5);
    for (size_t i = 0; i < RUNS; i++)
        REQUIRE((object[2 * i * PAGE] == 3 && object[2 * i * PAGE + 7] == 3 && object[2 * i * PAGE + 8] == 0));
}
