// Memory of the redo engine's private pages: it stays under options.private_max, however large the
// container is, and what one transaction changes may exceed it until the commit.
#include "common/process.hpp"

#include <algorithm>
#include <random>
#include <unistd.h>

using test::page_word;

namespace
{

constexpr uint64_t MiB = 1 << 20, LIMIT = 16 * MiB;

pm_options how(uint64_t max_size)
{
    pm_options o = test::options(PM_CREATE);
    o.max_size = max_size;
    o.private_max = LIMIT;
    return o;
}

// A root object of `pages` pages that were never stored to, so that the file is all holes.
pm_container *open_sparse(const std::string &path, uint64_t pages)
{
    pm_options options = how(UINT64_C(5) << 30);
    pm_container *c = pm_open(path.c_str(), &options);
    CHILD_REQUIRE(c);
    void *p = pm_malloc(c, pages * 4096);
    CHILD_REQUIRE(p && pm_setroot(c, p, 0) == 0 && pm_commit(c) == 0);
    return c;
}

} // namespace

// arguments: path, pages
CHILD_PROCESS(writes_at_random)
{
    uint64_t pages = std::stoul(arguments[1]);
    pm_container *c = open_sparse(arguments[0], pages);
    std::mt19937_64 random(1);
    uint64_t before = test::anonymous_bytes(), most = 0, most_pages = 0;
    std::vector<uint32_t> last(pages);
    for (uint32_t i = 1; i <= 300; i++) {
        for (int k = 0; k < 100; k++) {
            uint64_t page = random() % pages;
            page_word(c, page) = last[page] = i;
        }
        CHILD_REQUIRE(pm_commit_async(c).container); // not even if nobody waits
        most = std::max(most, test::anonymous_bytes() - before);
        most_pages = std::max(most_pages, test::stats(c).pages_private);
    }
    uint64_t own = pages * sizeof(uint32_t); // `last`
    test::say(
        (std::to_string(most >> 10) + " KiB, " + std::to_string(most_pages) + " pages").c_str());
    CHILD_REQUIRE(test::stats(c).pages_evicted > 10000);
    CHILD_REQUIRE(most_pages * 4096 <= LIMIT);
    if (test::stores()) // where each private page may have a page of marks
        own += LIMIT;
    CHILD_REQUIRE(most < LIMIT + LIMIT / 2 + own);
    for (uint64_t page = 0; page < pages; page++)
        if (last[page])
            CHILD_REQUIRE(page_word(c, page) == last[page]);
    CHILD_REQUIRE(pm_check(c) == 0);
    _exit(0);
}

TEST_CASE("random writes to 4 GiB keep private memory under its limit", "[redo]")
{
    // The file system of an ordinary file must have the room; so less there.
    bool file = GENERATE(false, true);
    test::Directory directory(file ? "/var/tmp" : "/dev/shm");
    uint64_t pages = (file ? UINT64_C(1) : UINT64_C(4)) << 18;
    test::Ended ended = test::run("writes_at_random", {directory / "c.pm", std::to_string(pages)});
    INFO(ended.output << ended.errors);
    REQUIRE(test::exited(ended.status));
    pm_options options = how(0);
    options.flags = 0;
    options.max_size = 0;
    test::Container c = test::open(directory / "c.pm", options);
    REQUIRE_OK(pm_check(c.get()));
}

// Nobody says how many pages may be private: 256 MiB of them.
CHILD_PROCESS(writes_with_defaults)
{
    const uint64_t most = 256 * MiB / 4096, pages = most + most / 4;
    pm_options options = test::options(PM_CREATE);
    options.max_size = UINT64_C(1) << 30;
    options.private_max = 0;
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    void *p = c ? pm_malloc(c, pages * 4096) : nullptr;
    CHILD_REQUIRE(p && pm_setroot(c, p, 0) == 0 && pm_commit(c) == 0);
    uint64_t had = 0;
    for (uint64_t page = 0; page < pages; page++) {
        page_word(c, page) = page;
        if (page % 1024 == 1023) {
            CHILD_REQUIRE(pm_commit(c) == 0);
            CHILD_REQUIRE(test::stats(c).pages_private <= most);
            had = std::max(had, test::stats(c).pages_private);
        }
    }
    CHILD_REQUIRE(had > most - 2048);
    _exit(0);
}

TEST_CASE("private memory has a limit that nobody set", "[redo]")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("writes_with_defaults", {directory / "c.pm"}));
}

CHILD_PROCESS(dirties_every_page)
{
    pm_container *c = open_sparse(arguments[0], std::stoul(arguments[1]));
    for (uint64_t page = 0, pages = std::stoul(arguments[1]); page < pages; page++)
        page_word(c, page) = page + 1;
    CHILD_REQUIRE(pm_commit(c) == 0);
    CHILD_REQUIRE(test::stats(c).pages_private * 4096 <= LIMIT);
    for (uint64_t page = 0, pages = std::stoul(arguments[1]); page < pages; page++)
        page_word(c, page) = page + 2;
    CHILD_REQUIRE(pm_commit(c) == 0);
    for (uint64_t i = 0; i < 3; i++) {
        page_word(c, 0) = 100 + i;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    CHILD_REQUIRE(test::stats(c).pages_private * 4096 <= LIMIT);
    _exit(0);
}

TEST_CASE("a transaction that dirties every page of 1 GiB", "[redo]")
{
    const uint64_t pages = UINT64_C(1) << 18;
    test::Directory directory;
    REQUIRE_CLEAN(test::run("dirties_every_page", {directory / "c.pm", std::to_string(pages)}));
    test::Container c = test::open(directory / "c.pm", test::options());
    REQUIRE(test::stats(c.get()).recovered);
    REQUIRE(page_word(c.get(), 0) == 102);
    for (uint64_t page = 1; page < pages; page++)
        if (page_word(c.get(), page) != page + 2)
            FAIL("page " << page);
    REQUIRE_OK(pm_check(c.get()));
}

CHILD_PROCESS(changes_nothing)
{
    uint64_t pages = std::stoul(arguments[1]);
    pm_container *c = open_sparse(arguments[0], pages);
    auto store = [&](uint64_t value) {
        for (uint64_t page = 0; page < pages; page++)
            const_cast<volatile uint64_t &>(page_word(c, page)) = value;
    };
    store(5);
    CHILD_REQUIRE(test::stats(c).pages_private * 4096 > LIMIT);
    CHILD_REQUIRE(pm_rollback(c) == 0);
    CHILD_REQUIRE(test::stats(c).pages_private * 4096 <= LIMIT);
    store(0);
    CHILD_REQUIRE(test::stats(c).pages_private * 4096 > LIMIT);
    uint64_t before = test::stats(c).commits;
    CHILD_REQUIRE(pm_commit(c) == 0 && test::stats(c).commits == before);
    CHILD_REQUIRE(test::stats(c).pages_private * 4096 <= LIMIT);
    _exit(0);
}

TEST_CASE("what was rolled back, or stored as it was, keeps no private memory", "[redo]")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("changes_nothing", {directory / "c.pm", std::to_string(1 << 16)}));
}
