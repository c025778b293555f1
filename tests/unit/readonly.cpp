// Reading only: the file keeps every byte, also when there is something to recover.
#include "common/format.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using test::failed_with;

namespace
{

pm_container *open_readonly(const std::string &path)
{
    pm_options options = test::options(PM_READONLY);
    return pm_open(path.c_str(), &options);
}

} // namespace

// Commits 1 on 30 pages, stores 2 there, allocates, and dies.
CHILD_PROCESS(leaves_an_open_transaction)
{
    test::Container c = test::open_with_pages(arguments[0], 100, test::small());
    for (int round = 1; round <= 2; round++) {
        for (uint64_t i = 0; i < 60; i += 2)
            test::page_word(c.get(), i) = (uint64_t)round;
        if (round == 1)
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
    CHILD_REQUIRE(pm_malloc(c.get(), 100));
    CHILD_REQUIRE(pm_malloc(c.get(), 100000));
    _exit(0);
}

CHILD_PROCESS(stores_to_read_only)
{
    test::Container c(open_readonly(arguments[0]));
    CHILD_REQUIRE(c);
    test::say("storing");
    test::page_word(c.get(), 0) = 9;
}

CHILD_PROCESS(opens_a_read_only_file_as_nobody)
{
    CHILD_REQUIRE(setgid(65534) == 0 && setuid(65534) == 0);
    CHILD_REQUIRE(!pm_open(arguments[0].c_str(), nullptr));
    CHILD_REQUIRE(failed_with(EACCES, {arguments[0].c_str()}));
    CHILD_REQUIRE(pm_delete(arguments[0].c_str()) == -1);
    CHILD_REQUIRE(failed_with(EACCES));
    test::Container c(open_readonly(arguments[0]));
    CHILD_REQUIRE(c);
    CHILD_REQUIRE(test::page_word(c.get(), 0) == 1);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
}

TEST_CASE("a crashed container opened read-only is recovered in private memory")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("leaves_an_open_transaction", {path}));
    std::string before = test::read_file(path);
    for (int again = 0; again < 2; again++) {
        test::Container c(open_readonly(path));
        REQUIRE(c);
        struct pm_stats stats = test::stats(c.get());
        REQUIRE(stats.recovered);
        REQUIRE(stats.recovered_pages >= 30);
        for (uint64_t i = 0; i < 100; i++)
            REQUIRE(test::page_word(c.get(), i) == (i < 60 && i % 2 == 0));
        REQUIRE_OK(pm_check(c.get()));
    }
    REQUIRE(test::read_file(path) == before);

    SECTION("and every change is refused")
    {
        test::Container c(open_readonly(path));
        void *root = pm_getroot(c.get());
        REQUIRE(root);
        auto refused = [&](bool failed) { return failed && failed_with(EROFS, {path.c_str()}); };
        REQUIRE(refused(!pm_malloc(c.get(), 1)));
        REQUIRE(refused(!pm_calloc(c.get(), 1, 1)));
        REQUIRE(refused(!pm_aligned_alloc(c.get(), 16, 1)));
        REQUIRE(refused(!pm_realloc(root, 1)));
        REQUIRE(refused(pm_free(root) == -1));
        REQUIRE(refused(pm_commit(c.get()) == -1));
        REQUIRE(refused(pm_rollback(c.get()) == -1));
        REQUIRE(refused(pm_clear(c.get()) == -1));
        REQUIRE(refused(pm_dirty(root, 1) == -1));
        REQUIRE(refused(pm_reserve(c.get(), 1) == -1));
        REQUIRE(refused(pm_setroot(c.get(), nullptr, 0) == -1));
        REQUIRE(pm_usable_size(root) >= 400000);
        REQUIRE(pm_contains(c.get(), root));
    }
    SECTION("and a store is a clean SIGSEGV")
    {
        test::Ended ended = test::run("stores_to_read_only", {path});
        REQUIRE(ended.output == "storing\n");
        REQUIRE(test::killed(ended.status, SIGSEGV));
    }
    REQUIRE(test::read_file(path) == before);

    // The writer finds the same.
    test::Container c = test::open(path, test::options());
    for (uint64_t i = 0; i < 100; i++)
        REQUIRE(test::page_word(c.get(), i) == (i < 60 && i % 2 == 0));
    c.reset();
    REQUIRE(test::read_file(path) != before);
}

TEST_CASE("a file that we may only read")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("leaves_an_open_transaction", {path}));
    REQUIRE(chmod(path.c_str(), 0444) == 0);
    REQUIRE(chmod(directory.path().c_str(), 0755) == 0);
    std::string before = test::read_file(path);
    // Root may write anything, so somebody else must try.
    if (geteuid() == 0)
        REQUIRE_CLEAN(test::run("opens_a_read_only_file_as_nobody", {path}));
    else {
        REQUIRE_FALSE(pm_open(path.c_str(), nullptr));
        REQUIRE(failed_with(EACCES));
        REQUIRE(test::Container(open_readonly(path)));
    }
    REQUIRE(test::read_file(path) == before);
}

TEST_CASE("an undamaged container can be read again and again")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open_with_pages(path, 10, test::small());
    std::string before = test::read_file(path);
    test::Container c(open_readonly(path));
    REQUIRE(c);
    struct pm_stats stats = test::stats(c.get());
    REQUIRE_FALSE(stats.recovered);
    REQUIRE(stats.recovery_ns == 0);
    c.reset();
    REQUIRE(test::read_file(path) == before);
}
