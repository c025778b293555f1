// When private pages are too many, home's pages go to the file so that their copies can be given back.
// Commits that nobody has waited for may have changed these pages: so the log is synced first. Else a
// power failure could lose a commit's record and keep some of its pages. Every container here is on an
// ordinary file.
#include "common/file_medium.hpp"
#include "common/fixture.hpp"

#include <cstring>

using test::page_word;

TEST_CASE("pages that are evicted hold nothing that is not durable", "[redo]")
{
    constexpr uint64_t PAGES = 600, COMMITS = 60, CHANGED = 20, PAGE = 4096;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::small();
    how.private_max = 1 << 20; // the least: half of it for the view
    test::open_with_pages(path, PAGES, how);
    test::Container c = test::open(path, how);
    const struct pm_stats before = test::stats(c.get());
    const uint64_t home =
        (uint64_t)(static_cast<char *>(pm_getroot(c.get())) - static_cast<const char *>(before.base));
    uint64_t durable = 0, ahead = 0;
    for (uint64_t commit = 1; commit <= COMMITS; commit++) {
        for (uint64_t i = 0; i < CHANGED; i++)
            page_word(c.get(), commit * CHANGED * 3 % (PAGES - CHANGED) + i) = commit;
        const uint64_t syncs = test::file_medium.syncs;
        REQUIRE(pm_commit_async(c.get()).container);
        if (test::file_medium.syncs > syncs)
            durable = commit;
        ahead += commit > durable;
        const std::string file = test::read_file(path);
        for (uint64_t page = 0; page < PAGES; page++) {
            uint64_t value;
            memcpy(&value, &file[home + page * PAGE], sizeof value);
            CAPTURE(commit, page);
            REQUIRE(value <= durable);
        }
    }
    REQUIRE(test::stats(c.get()).pages_evicted > before.pages_evicted);
    REQUIRE(ahead > 0); // else every commit was durable at once
    REQUIRE_OK(pm_check(c.get()));
}
