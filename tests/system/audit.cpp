// A program of which one object file (foreign.c) was not compiled by pmcc: what becomes of the
// stores that it makes.
#include "common/process.hpp"
#include "system/foreign.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

// Under the log engine the value is in the file before its commit.
CHILD_PROCESS(is_audited_in_a_large_value)
{
    pm_options how = test::options(PM_CREATE);
    how.segment_size = 1 << 20;
    test::Container c = test::open(arguments[0], how);
    const std::string value(512 << 10, 'v');
    char *object = static_cast<char *>(pm_put(c.get(), value.data(), value.size()));
    CHILD_REQUIRE(object && pm_setroot(c.get(), object, 0) == 0);
    CHILD_REQUIRE(pm_dirty(object + 8192, 8) == 0);
    object[8192] = 'x';
    foreign_store(reinterpret_cast<volatile uint64_t *>(object + 9216), 77);
    CHILD_REQUIRE(pm_commit(c.get()) == -1 && failed_with(EFAULT, {"byte 9216 "}));
    CHILD_REQUIRE(pm_commit(c.get()) == 0); // includes it
    _exit(0);
}

TEST_CASE("with LIBPM_AUDIT=1 a missed store to a large value fails the commit", "[stores][log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Ended ended = test::run("is_audited_in_a_large_value", {path}, {"LIBPM_AUDIT=1"});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    test::Container c = test::open(path, test::options());
    const char *object = static_cast<const char *>(pm_getroot(c.get()));
    REQUIRE(object[8192] == 'x');
    REQUIRE(*reinterpret_cast<const uint64_t *>(object + 9216) == 77);
}

// The commit after it takes the store, and what a declared pointer leads to now.
CHILD_PROCESS(is_audited_at_a_pointer)
{
    test::Container c =
        test::open_with_pages(arguments[0], PAGES, test::small(PM_CREATE | PM_MOVABLE));
    volatile uint64_t *field = word(c.get(), 3, 7);
    CHILD_REQUIRE(pm_mark_pointer((void *)field) == 0);
    *word(c.get(), 3, 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    foreign_store(field, (uint64_t)(uintptr_t)qsort);
    CHILD_REQUIRE(pm_commit(c.get()) == -1 && pm_commit(c.get()) == 0);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    c.reset();
    c = test::open(arguments[0], test::options(PM_MOVABLE));
    CHILD_REQUIRE(*word(c.get(), 3, 7) == (uint64_t)(uintptr_t)qsort);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    _exit(0);
}

TEST_CASE("with LIBPM_AUDIT=1 a pointer to a function that no mark announced is kept", "[stores]")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("is_audited_at_a_pointer", {directory / "c.pm"}, {"LIBPM_AUDIT=1"}));
}

// A mark takes an image of its line. If foreign code has stored there before, the image has that store too.
CHILD_PROCESS(is_audited_beside_marks)
{
    test::Container c = test::open_with_pages(arguments[0], PAGES, test::small());
    auto fails_at = [&](volatile uint64_t *missed) {
        char address[40];
        snprintf(address, sizeof address, "the store to %p,", (void *)missed);
        return pm_commit(c.get()) == -1 && failed_with(EFAULT, {address, "was not announced"});
    };
    *word(c.get(), 3, 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);

    volatile uint64_t *line = word(c.get(), 3, 7);
    foreign_store(line + 2, 77);
    line[0] = 0; // what is there
    CHILD_REQUIRE(fails_at(line + 2));
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    foreign_store(line + 3, 78);
    line[1] = 5; // a change, and before the missed one
    CHILD_REQUIRE(fails_at(line + 3));
    CHILD_REQUIRE(pm_rollback(c.get()) == 0);
    CHILD_REQUIRE(line[1] == 0 && line[2] == 77 && line[3] == 0);
    foreign_store(line + 3, 79);
    line[1] = 6;
    CHILD_REQUIRE(fails_at(line + 3));
    CHILD_REQUIRE(pm_commit(c.get()) == 0);

    // All are found at once, here and there.
    foreign_store(word(c.get(), 3, 8), 80);
    foreign_store(word(c.get(), 3, 9), 81);
    *(word(c.get(), 3, 9) + 1) = 0;
    *word(c.get(), 4, 0) = 1;
    foreign_store(word(c.get(), 4, 1), 82);
    *(word(c.get(), 4, 1) + 1) = 0;
    CHILD_REQUIRE(pm_commit(c.get()) == -1);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

TEST_CASE("with LIBPM_AUDIT=1 a missed store fails the commit if its line is marked", "[stores]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("is_audited_beside_marks", {path}, {"LIBPM_AUDIT=1"}));
    test::Container c = test::open(path, test::options());
    REQUIRE(word(c.get(), 3, 7)[1] == 6);
    REQUIRE(word(c.get(), 3, 7)[2] == 77);
    REQUIRE(word(c.get(), 3, 7)[3] == 79);
    REQUIRE(*word(c.get(), 3, 8) == 80);
    REQUIRE(*word(c.get(), 3, 9) == 81);
    REQUIRE(*word(c.get(), 4, 1) == 82);
}

// So many lines are marked that commit sorts them.
CHILD_PROCESS(is_audited_beside_many_marks)
{
    constexpr uint64_t MANY = (1 << 16) / 64 + 10; // pages
    test::Container c = test::open_with_pages(arguments[0], MANY, test::options(PM_CREATE));
    *word(c.get(), 3, 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    volatile uint64_t *missed = word(c.get(), 3, 7);
    foreign_store(missed, 77);
    for (uint64_t page = 0; page < MANY; page++)
        for (uint64_t line = 0; line < 64; line++)
            word(c.get(), page, line)[1] = 0;
    char address[40];
    snprintf(address, sizeof address, "the store to %p,", (void *)missed);
    CHILD_REQUIRE(pm_commit(c.get()) == -1 && failed_with(EFAULT, {address}));
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

TEST_CASE("with LIBPM_AUDIT=1 a missed store fails the commit though many are marked", "[stores]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("is_audited_beside_many_marks", {path}, {"LIBPM_AUDIT=1"}));
    reopen_and_require(path, 3, 7, 77);
}

// Nothing is missed here, so no commit may fail.
CHILD_PROCESS(misses_nothing)
{
    test::Container c = test::open_with_pages(arguments[0], PAGES, test::small());
    *word(c.get(), 3, 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    volatile uint64_t *line = word(c.get(), 3, 7);
    foreign_store(line, 77);
    *line = 78; // has replaced it
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    *line = 79; // marked before
    foreign_store(line + 1, 80);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    foreign_store(word(c.get(), 9, 1), 81); // a fault announces it
    *(word(c.get(), 9, 1) + 1) = 0;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);

    // Commit takes the whole line of a fresh object, so foreign stores to the free space do not matter.
    auto *object = static_cast<volatile uint64_t *>(pm_malloc(c.get(), 64));
    object[0] = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    foreign_store(object + 1, 82);
    pm_free(const_cast<uint64_t *>(object));
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    auto *again = static_cast<volatile uint64_t *>(pm_malloc(c.get(), 64));
    CHILD_REQUIRE(again == object);
    foreign_store(again + 2, 83);
    again[0] = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(pm_setroot(c.get(), const_cast<uint64_t *>(again), 0) == 0);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

TEST_CASE("with LIBPM_AUDIT=1 a store that a commit includes fails none", "[stores]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("misses_nothing", {path}, {"LIBPM_AUDIT=1"}));
    test::Container c = test::open(path, test::options());
    REQUIRE(static_cast<uint64_t *>(pm_getroot(c.get()))[2] == 83);
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
    const bool on_the_last_page = GENERATE(false, true);
    for (uint64_t page = 0; page < PAGES; page++)
        *word(c.get(), page, 0) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t commits = 0;
    for (bool found = false; !found; commits++) {
        REQUIRE(commits < 64 * PAGES * 4);
        *word(c.get(), commits % PAGES, 0) = commits + 2;
        foreign_store(word(c.get(), on_the_last_page ? PAGES - 1 : commits % PAGES, 5), commits + 2);
        found = pm_commit(c.get()) != 0;
    }
    REQUIRE(failed_with(EFAULT, {"was not announced"}));
    // What was found is included next time, when it may find more; in the end all is seen.
    for (uint64_t again = 0; pm_commit(c.get()) != 0; again++)
        REQUIRE(again < PAGES);
}

TEST_CASE("the commit after one that found a missed store includes all of them", "[stores]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, PAGES, test::small());
    uint64_t commits = 0;
    for (bool found = false; !found; commits++) {
        REQUIRE(commits < 128);
        for (uint64_t page = 0; page < PAGES; page++) {
            *word(c.get(), page, 0) = commits + 1;
            foreign_store(word(c.get(), page, 5), commits + 1);
            foreign_store(word(c.get(), page, 6), commits + 1);
            word(c.get(), page, 6)[1] = 0; // a mark, behind it
        }
        found = pm_commit(c.get()) != 0;
    }
    REQUIRE(failed_with(EFAULT, {"was not announced"}));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    for (uint64_t page : {uint64_t{0}, uint64_t{20}, PAGES - 1})
        for (uint64_t line : {5, 6})
            reopen_and_require(path, page, line, commits);
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
