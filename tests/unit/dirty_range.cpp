// After pm_dirty() no store to the range meets a fault, whichever of its pages were open before. So no store
// there can end the process.
#include "common/fixture.hpp"

using test::page_word;

TEST_CASE("a range that is announced is open, whatever of it was")
{
    constexpr unsigned PAGES = 4;
    constexpr uint64_t PAGE = 4096;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    for (unsigned open = 0; open < 1u << PAGES; open++)
        for (unsigned first = 0; first < PAGES; first++)
            for (unsigned end = first + 1; end <= PAGES; end++) {
                CAPTURE(open, first, end);
                test::Container c = test::open_with_pages(path, 2 * PAGES, test::small());
                for (unsigned page = 0; page < PAGES; page++)
                    if (open & 1u << page)
                        REQUIRE_OK(pm_dirty((const void *)&page_word(c.get(), page), 1));
                // From the last byte of the first page to the first of the last.
                const char *start = (const char *)&page_word(c.get(), first) + PAGE - 1;
                const char *last = (const char *)&page_word(c.get(), end - 1);
                REQUIRE_OK(pm_dirty(start, last > start ? (size_t)(last - start) + 1 : 1));
                const uint64_t faults = test::stats(c.get()).faults;
                for (unsigned page = first; page < end; page++)
                    page_word(c.get(), page) = page + 1;
                REQUIRE(test::stats(c.get()).faults == faults);
                REQUIRE_OK(pm_commit(c.get()));
                c.reset();
                REQUIRE_OK(pm_delete(path.c_str()));
            }
}
