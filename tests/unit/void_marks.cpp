// Marks that were noted and never set. A commit ignores them, also where it sorts marks.
#include "common/file_medium.hpp"
#include "common/fixture.hpp"
#include "unit/page_state.h"

#include <cerrno>

TEST_CASE("a commit that failed, and had void marks, finds everything the next time")
{
    // On a file marks are sorted from 512 on: so the first time, and not the second.
    constexpr uint64_t LINES = 511, VOID = 3;
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    void *root = pm_calloc(c.get(), LINES + VOID, 64 * 4);
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    // A quarter of the lines of each page, which are too few to look at the page as a whole.
    auto word = [&](uint64_t i) -> volatile uint64_t &
    {
        return static_cast<volatile uint64_t *>(root)[i * 4 * 8];
    };
    for (uint64_t i = 0; i < LINES + VOID; i++)
        word(i) = i;
    REQUIRE_OK(pm_commit(c.get()));

    // Downwards, and each gets what another had: an image taken for another's would hide the change.
    for (uint64_t i = LINES; i-- > 0;)
        word(i) = LINES - 1 - i;
    for (uint64_t i = 0; i < VOID; i++)
        leave_mark(c.get(), (const void *)&word(LINES + i));
    test::file_medium = {};
    test::file_medium.write_fails = 1;
    test::file_medium.write_error = ENOSPC;
    REQUIRE(pm_commit(c.get()) == -1);
    test::file_medium = {};
    struct pm_stats before = test::stats(c.get());
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).lines_logged == before.lines_logged + LINES - 1); // not the middle

    c.reset();
    c = test::open(path, test::small());
    root = pm_getroot(c.get());
    for (uint64_t i = 0; i < LINES; i++)
        REQUIRE(word(i) == LINES - 1 - i);
}
