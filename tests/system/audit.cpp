// A program of which one object file (foreign.c) was not compiled by pmcc: what becomes of the
// stores that it makes.
#include "common/process.hpp"
#include "system/foreign.h"

#include <cerrno>
#include <cstdio>
#include <unistd.h>

using test::failed_with;
using test::page_word;

namespace
{

constexpr uint64_t PAGES = 50;

volatile uint64_t *word(pm_container *c, uint64_t page, uint64_t line)
{
    return &page_word(c, page) + line * 8;
}

void reopen_and_require(const std::string &path, uint64_t page, uint64_t line, uint64_t value)
{
    test::Container c = test::open(path, test::options());
    REQUIRE(*word(c.get(), page, line) == value);
    REQUIRE_OK(pm_check(c.get()));
}

} // namespace

// The page is open because of a mark; the other store leaves none.
CHILD_PROCESS(is_audited)
{
    test::Container c = test::open_with_pages(arguments[0], PAGES, test::small());
    *word(c.get(), 3, 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    volatile uint64_t *missed = word(c.get(), 3, 7) + 2;
    foreign_store(missed, 77);
    char address[40], object[40];
    snprintf(address, sizeof address, "%p", (void *)missed);
    snprintf(object, sizeof object, "%p", pm_getroot(c.get()));
    CHILD_REQUIRE(pm_commit(c.get()) == -1);
    CHILD_REQUIRE(failed_with(
        EFAULT, {arguments[0].c_str(), address, object, "byte 12752 ", "pmcc", "pm_dirty"}));
    CHILD_REQUIRE(*missed == 77);
    CHILD_REQUIRE(pm_commit(c.get()) == 0); // includes it
    foreign_store(missed, 78);
    CHILD_REQUIRE(pm_dirty((void *)missed, 8) == 0); // announced, even if late
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    foreign_store(missed, 78 | 1 << 24); // the first byte that differs is named
    CHILD_REQUIRE(pm_commit(c.get()) == -1);
    CHILD_REQUIRE(failed_with(EFAULT, {"byte 12755 "}));
    CHILD_REQUIRE(pm_rollback(c.get()) == 0);
    CHILD_REQUIRE(*missed == 78);
    foreign_store(missed, 80);
    CHILD_REQUIRE(pm_commit(c.get()) == -1 && pm_commit(c.get()) == 0);
    _exit(0);
}

TEST_CASE("with LIBPM_AUDIT=1 a store that no mark announced fails the commit", "[stores]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Ended ended = test::run("is_audited", {path}, {"LIBPM_AUDIT=1"});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    REQUIRE(ended.errors.find("was not announced") != std::string::npos);
    reopen_and_require(path, 3, 7, 0);
    test::Container c = test::open(path, test::options());
    REQUIRE(word(c.get(), 3, 7)[2] == 80);
}

// Marks keep images of lines, as they are before stores: such a line has none.
TEST_CASE("a store to an open page that is announced late is committed all the same", "[stores]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, PAGES, test::small());
    *word(c.get(), 3, 0) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    auto *late = const_cast<uint64_t *>(word(c.get(), 3, 7));
    SECTION("by pm_dirty()")
    {
        foreign_store(late, 77);
        REQUIRE_OK(pm_dirty(late, sizeof *late));
    }
    SECTION("by what libc has assigned")
    {
        REQUIRE(sscanf("77", "%lu", late) == 1);
    }
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    reopen_and_require(path, 3, 7, 77);
}

TEST_CASE("the sampled audit finds a habit sooner or later", "[stores]")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", PAGES, test::small());
    for (uint64_t page = 0; page < PAGES; page++)
        *word(c.get(), page, 0) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t commits = 0;
    for (bool found = false; !found; commits++) {
        REQUIRE(commits < 64 * PAGES * 2);
        *word(c.get(), commits % PAGES, 0) = commits + 2;
        foreign_store(word(c.get(), commits % PAGES, 5), commits + 2);
        found = pm_commit(c.get()) != 0;
    }
    REQUIRE(failed_with(EFAULT, {"was not announced"}));
    // What was found is included next time, when it may find more; in the end all is seen.
    for (uint64_t again = 0; pm_commit(c.get()) != 0; again++)
        REQUIRE(again < PAGES);
}

TEST_CASE("a foreign store to a page that nobody marked faults and is committed", "[stores]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    {
        test::Container c = test::open_with_pages(path, PAGES, test::small());
        uint64_t faults = test::stats(c.get()).faults;
        for (uint64_t i = 1; i <= 20; i++) { // again and again: the page is watched
            foreign_store(word(c.get(), 9, i), i);
            REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE(test::stats(c.get()).faults > faults);
        foreign_store(word(c.get(), 20, 1), 5);
        *word(c.get(), 20, 2) = 6; // after it, a mark on the same page
        foreign_store(word(c.get(), 20, 3), 7);
        REQUIRE_OK(pm_commit(c.get()));
        foreign_store(word(c.get(), 20, 4), 8);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(*word(c.get(), 20, 4) == 0);
    }
    for (uint64_t i = 1; i <= 20; i++)
        reopen_and_require(path, 9, i, i);
    for (uint64_t line : {1, 2, 3})
        reopen_and_require(path, 20, line, line + 4);
}

TEST_CASE("a foreign store to a declared pointer is asked where it leads", "[stores]")
{
    test::Directory directory;
    const pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    test::Container c = test::open(directory / "c.pm", how);
    auto *p = static_cast<uint64_t *>(pm_calloc(c.get(), 8, sizeof(uint64_t)));
    REQUIRE((p && pm_setroot(c.get(), p, 0) == 0 && pm_mark_pointer(p + 2) == 0));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(directory / "c.pm", how); // nothing is open, so the store faults
    p = static_cast<uint64_t *>(pm_getroot(c.get()));
    foreign_store(p + 2, (uintptr_t)&directory);
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(failed_with(EINVAL, {"byte 16 of the object", "leads out of the container"}));
    foreign_store(p + 2, (uintptr_t)(p + 7));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(p, p + 8) == reinterpret_cast<void **>(p + 2));
}

// A line has the end of an object, and space that is free.
CHILD_PROCESS(stores_behind_an_object)
{
    test::Container c = test::open(arguments[0], test::small());
    constexpr size_t SIZE = 80;
    char *p = static_cast<char *>(pm_malloc(c.get(), SIZE));
    CHILD_REQUIRE(p && pm_usable_size(p) == SIZE && (uintptr_t)p % 64 == 0);
    p[0] = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    auto *missed = reinterpret_cast<volatile uint64_t *>(p + SIZE);
    foreign_store(missed, 77);
    char address[40];
    snprintf(address, sizeof address, "%p,", (void *)missed);
    CHILD_REQUIRE(pm_commit(c.get()) == -1);
    CHILD_REQUIRE(failed_with(EFAULT, {arguments[0].c_str(), address}));
    CHILD_REQUIRE(std::string(pm_errormsg()).find("object") == std::string::npos);
    _exit(0);
}

TEST_CASE("an audit finds a store to no object on a line of one", "[stores]")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("stores_behind_an_object", {directory / "c.pm"}, {"LIBPM_AUDIT=1"}));
}

CHILD_PROCESS(marks_what_is_no_object)
{
    test::Container c = test::open_with_pages(arguments[0], PAGES, test::small());
    uintptr_t first = (uintptr_t)pm_getroot(c.get()) >> 30 << 30; // of the container
    test::say("so far");
    *reinterpret_cast<volatile uint64_t *>(first) = 1;
}

TEST_CASE("a marked store where no object is kills the program", "[stores]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Ended ended = test::run("marks_what_is_no_object", {path});
    INFO(ended.errors);
    REQUIRE(ended.output == "so far\n");
    REQUIRE(test::killed(ended.status, SIGSEGV));
    REQUIRE_OK(pm_check(test::open(path, test::options()).get()));
}
