// What is noted of stores that compiled code announces.
#include "common/fixture.hpp"
#include "unit/page_state.h"

#include <mutex>
#include <thread>

TEST_CASE("a line that several threads mark at once is noted once")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 2, test::small());
    std::mutex held;
    held.lock();
    std::thread other([&] { std::lock_guard wait(held); }); // so that locked instructions are used
    volatile uint64_t *first = &test::page_word(c.get(), 0), *second = first + 8;
    CHECK(mark_at_once(c.get(), (const void *)first, 100) == 1);
    *first = 1;
    CHECK(mark_at_once(c.get(), (const void *)second, 100) == 2);
    *second = 2;
    held.unlock();
    other.join();
    struct pm_stats before = test::stats(c.get());
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).lines_logged == before.lines_logged + 2);
    CHECK(mark_at_once(c.get(), (const void *)first, 100) == 1); // anew in each transaction
    REQUIRE_OK(pm_check(c.get()));
}
