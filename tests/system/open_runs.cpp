// Marks open pages one by one, until the kernel's maps would run out. Then libpm closes all pages, and opens
// longer runs. So a program that stores to scattered pages again and again soon closes none.
#include "common/process.hpp"
#include "system/foreign.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

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

size_t pages_copied; // by the kernel, many in one call

} // namespace

extern "C" int __real_madvise(void *, size_t, int);
extern "C" int __wrap_madvise(void *address, size_t bytes, int advice)
{
    if (advice == MADV_POPULATE_WRITE)
        pages_copied += bytes / PAGE;
    return __real_madvise(address, bytes, advice);
}

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
        REQUIRE((object[2 * i * PAGE] == 3 && object[2 * i * PAGE + 7] == 3 &&
                 object[2 * i * PAGE + 8] == 0));
}

// arguments: path
CHILD_PROCESS(misses_a_mark_on_an_open_page)
{
    pm_options how = test::options(PM_CREATE);
    how.max_size = how.private_max = 1 << 30;
    const test::Container c = test::open(arguments[0], how);
    auto *object = static_cast<char *>(pm_malloc(c.get(), BYTES));
    CHILD_REQUIRE(object && pm_setroot(c.get(), object, 0) == 0);
    for (size_t i = 0; i < RUNS; i++) // from 8192 on each mark opens a run of pages
        object[2 * i * PAGE] = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    alarm(60);
    size_t page = 2 * RUNS - 8;
    object[page * PAGE] = 2;
    foreign_store(reinterpret_cast<volatile uint64_t *>(object + (page + 1) * PAGE), 3);
    CHILD_REQUIRE(pm_commit(c.get()) == -1 && errno == EFAULT);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
}

TEST_CASE("the audit marks a page that is open without a copy")
{
    test::Directory directory;
    test::Ended ended =
        test::run("misses_a_mark_on_an_open_page", {directory / "c.pm"}, {"LIBPM_AUDIT=1"});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status, 0));
}

TEST_CASE("stores that run on in two places cost few page faults")
{
    test::Directory directory;
    pm_options how = test::options(PM_CREATE);
    how.max_size = 1 << 30;
    how.private_max = 1 << 30;
    const test::Container c = test::open(directory / "c.pm", how);
    auto *object = static_cast<char *>(pm_malloc(c.get(), BYTES));
    REQUIRE(object);
    REQUIRE_OK(pm_setroot(c.get(), object, 0));
    REQUIRE_OK(pm_commit(c.get()));
    const bool had_long_runs = GENERATE(false, true);
    if (had_long_runs)
        store_everywhere(c.get(), object, 1);

    auto *elsewhere = static_cast<char *>(pm_malloc(c.get(), BYTES));
    REQUIRE(elsewhere);
    REQUIRE_OK(pm_commit(c.get()));
    constexpr size_t PAGES = 4096;
    char *const other = elsewhere + BYTES / 2;
    pages_copied = 0;
    for (size_t i = 0; i < PAGES; i++)
        elsewhere[i * PAGE] = other[i * PAGE] = 1;
    CHECK(pages_copied >= 2 * PAGES * 9 / 10);
    REQUIRE_OK(pm_commit(c.get()));
}
