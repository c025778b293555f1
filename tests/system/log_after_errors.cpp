// A commit whose writes fail changes nothing about the log's space, however often it fails, and wherever.
// Every container here is on an ordinary file.
#include "common/file_medium.hpp"
#include "common/format.hpp"
#include "common/process.hpp"
#include "unit/page_state.h"

#include <cerrno>

using test::page_word;

namespace
{

constexpr uint64_t PAGES = 600, WORDS = 512; // of a page
constexpr int TIMES = 12;

// A record of the first `words` words of each of the first `pages` pages.
void store(pm_container *c, uint64_t value, uint64_t pages, uint64_t words)
{
    for (uint64_t page = 0; page < pages; page++)
        for (uint64_t i = 0; i < words; i += 8)
            (&page_word(c, page))[i] = value;
}

struct Space {
    uint64_t log, free, bytes;
    bool operator==(const Space &) const = default;
};

std::ostream &operator<<(std::ostream &out, const Space &s)
{
    return out << s.log << " segments of log, " << s.free << " free, " << s.bytes << " bytes";
}

Space space_of(pm_container *c)
{
    struct pm_stats s = test::stats(c);
    return {s.segments_log, s.segments_free, s.file_bytes};
}

// Commit, with every write from number `at` on failing.
bool commit_failing_at(pm_container *c, uint64_t at)
{
    test::file_medium = {};
    test::file_medium.write_fails = at;
    test::file_medium.write_error = ENOSPC;
    int result = pm_commit(c), error = errno;
    test::file_medium = {};
    REQUIRE((result == 0 || error == ENOSPC));
    return result == 0;
}

// Let each write of the commit fail in turn, so often that the log has no room for all attempts, and then
// let it succeed. The first attempt makes the log large enough; no other attempt changes its size.
uint64_t commit_after_failures(const std::string &path, pm_container *c, uint64_t value)
{
    uint64_t failures = 0;
    if (commit_failing_at(c, 1))
        return 0;
    bool done = false;
    for (uint64_t at = 1; !done; at++) {
        const Space before = space_of(c);
        for (int again = 0; again < TIMES && !done; again++, failures++) {
            CAPTURE(value, at, again);
            done = commit_failing_at(c, at);
            if (!done) {
                REQUIRE(space_of(c) == before);
                REQUIRE(base_epoch_in_memory(c) == test::read_word(path, FORMAT_STATE));
                REQUIRE_OK(pm_check(c));
            }
        }
    }
    return failures;
}

} // namespace

TEST_CASE("commits that fail leave the log as large as it is", "[redo]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::small();
    how.max_size = 12 << 20; // whose share for the log is soon used up
    test::Container c = test::open_with_pages(path, PAGES, how);
    store(c.get(), 1, PAGES, WORDS);
    REQUIRE_OK(pm_commit(c.get()));
    // From the largest record to the smallest: the log shrinks, and some segments are needed again.
    const Space most = space_of(c.get());
    uint64_t failures = 0, value = 2;
    for (uint64_t pages : {PAGES, PAGES / 4, UINT64_C(40)})
        for (int commits = 0; commits < 12; commits++) {
            CAPTURE(pages, commits);
            store(c.get(), ++value, pages, 64);
            failures += commit_after_failures(path, c.get(), value);
        }
    REQUIRE(failures > 100);
    REQUIRE(space_of(c.get()).log < most.log);
    c.reset();
    c = test::open(path, test::options());
    REQUIRE(page_word(c.get(), 0) == value);
    REQUIRE_OK(pm_check(c.get()));
}
