// The kernel allows a process some 65,000 maps, and each lone open page takes two.
#include "common/process.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <string>

using test::page_word;

namespace
{

size_t count_maps()
{
    std::ifstream maps("/proc/self/maps");
    size_t n = 0;
    for (std::string line; std::getline(maps, line);)
        n++;
    return n;
}

long max_map_count()
{
    long n = 0;
    std::ifstream("/proc/sys/vm/max_map_count") >> n;
    return n;
}

pm_options how(uint64_t max_size)
{
    pm_options o = test::options(PM_CREATE);
    o.max_size = max_size;
    return o;
}

// Every second page of `pages`, in random order.
std::vector<uint32_t> scattered(uint32_t pages)
{
    std::vector<uint32_t> all(pages / 2);
    for (uint32_t i = 0; i < all.size(); i++)
        all[i] = 2 * i;
    std::shuffle(all.begin(), all.end(), std::mt19937(1));
    return all;
}

} // namespace

TEST_CASE("100,000 scattered pages in one transaction")
{
    const uint32_t PAGES = 200000;
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE(max_map_count() < 2 * 65536); // else this proves nothing
    test::Container c = test::open_with_pages(path, PAGES, how(UINT64_C(2) << 30));
    size_t maps = count_maps();
    for (uint32_t page : scattered(PAGES))
        page_word(c.get(), page) = page + 1;
    REQUIRE(count_maps() > maps + 1000);
    struct pm_stats before = test::stats(c.get());
    REQUIRE(before.pages_evicted > 0);
    REQUIRE(before.pages_logged < PAGES / 2 + PAGES / 20); // no page twice, few neighbours
    REQUIRE_OK(pm_commit(c.get()));
    struct pm_stats after = test::stats(c.get());
    REQUIRE(after.rounds == before.rounds + 1);
    // Pages that stay hot cost maps as well, so let them cool.
    for (uint64_t i = 0; i < 4; i++) {
        page_word(c.get(), 1) = i + 1;
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE(count_maps() <= maps + 100);
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, test::options());
    for (uint32_t page = 0; page < PAGES; page++)
        if (page_word(c.get(), page) != (page % 2 ? page == 1 ? 4 : 0 : page + 1))
            FAIL("page " << page);
}

TEST_CASE("40,000 scattered pages rolled back, and stored to again")
{
    const uint32_t PAGES = 80000;
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", PAGES, how(UINT64_C(2) << 30));
    REQUIRE(max_map_count() < (long)PAGES); // else this proves nothing
    size_t maps = count_maps();
    std::vector<uint32_t> order = scattered(PAGES);
    for (int again = 0; again < 2; again++) {
        for (uint32_t page : order)
            page_word(c.get(), page) = 1;
        REQUIRE_OK(pm_rollback(c.get()));
        for (uint32_t page = 0; page < PAGES; page++)
            if (page_word(c.get(), page) != 0)
                FAIL("page " << page);
    }
    REQUIRE(test::stats(c.get()).pages_evicted > 0);
    REQUIRE(test::stats(c.get()).pages_logged < PAGES / 2 + PAGES / 20); // one image serves both
    page_word(c.get(), 5) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(count_maps() <= maps + 100);
    REQUIRE_OK(pm_check(c.get()));
}

// With concurrent stores the commit begins with closing all pages.
TEST_CASE("40,000 scattered pages with concurrent stores", "[faults]")
{
    const uint32_t PAGES = 80000;
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options options = how(UINT64_C(2) << 30);
    options.concurrent_stores = true;
    test::Container c = test::open_with_pages(path, PAGES, options);
    size_t maps = count_maps();
    for (uint32_t page : scattered(PAGES))
        page_word(c.get(), page) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(count_maps() <= maps + 10);
    // Fresh pages too are opened one by one here.
    char *p = static_cast<char *>(pm_malloc(c.get(), PAGES * 4096));
    REQUIRE(p);
    maps = count_maps();
    for (uint32_t page : scattered(PAGES))
        p[(uint64_t)page * 4096] = 1;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(count_maps() <= maps + 100);
    REQUIRE_OK(pm_check(c.get()));
}
