// Ordinary files: with the redo engine they are as safe as any; with undo a commit survives the
// process but not the power.
#include "common/process.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

using test::failed_with;
using test::page_word;

namespace
{

bool on_memory(const std::string &path)
{
    struct statfs fs;
    return statfs(path.c_str(), &fs) != 0 || fs.f_type == TMPFS_MAGIC;
}

// A directory on a file system with a medium below it.
std::string ordinary_directory()
{
    for (const char *candidate : {"/var/tmp", "."})
        if (!on_memory(candidate))
            return candidate;
    return "/var/tmp"; // and the test says so
}

} // namespace

CHILD_PROCESS(works_as_pmem)
{
    pm_options how = test::small();
    test::Container c = test::open_with_pages(arguments[0], 64, how);
    struct pm_stats before = test::stats(c.get());
    CHILD_REQUIRE(std::string(before.medium) == "pmem");
    page_word(c.get(), 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    uint64_t fences = test::mode() == "undo" ? 2 : 1; // fault and commit
    CHILD_REQUIRE(test::stats(c.get()).fences == before.fences + fences);
}

CHILD_PROCESS(dies_on_an_ordinary_file)
{
    test::Container c =
        test::open_with_pages(arguments[0], 64, test::small(PM_CREATE | PM_UNSAFE_POWER));
    page_word(c.get(), 0) = 1;
    page_word(c.get(), 20) = 1;
    CHILD_REQUIRE(pm_malloc(c.get(), 300000) != nullptr);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    page_word(c.get(), 0) = 2;
    page_word(c.get(), 30) = 2;
    CHILD_REQUIRE(pm_malloc(c.get(), 300000) != nullptr);
    _exit(0);
}

TEST_CASE("undo refuses an ordinary file unless the program accepts what that means", "[undo]")
{
    test::Directory directory(ordinary_directory());
    REQUIRE_FALSE(on_memory(directory.path()));
    std::string path = directory / "c.pm";
    pm_options options = test::small();
    REQUIRE_FALSE(pm_open(path.c_str(), &options));
    REQUIRE(failed_with(ENOTSUP, {path.c_str(), "PM_UNSAFE_POWER"}));
    // A call that failed has changed nothing.
    CHECK_FALSE(std::filesystem::exists(path));

    options.flags |= PM_UNSAFE_POWER;
    {
        test::Container c = test::open_with_pages(path, 64, options);
        struct pm_stats stats = test::stats(c.get());
        REQUIRE(std::string(stats.medium) == "file");
        REQUIRE_FALSE(stats.power_safe);
        for (uint64_t i = 0; i < 64; i += 2) {
            page_word(c.get(), i) = 1;
            if (i % 8 == 0)
                REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(pm_malloc(c.get(), 1 << 20));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::stats(c.get()).fences == 0);
        REQUIRE_OK(pm_check(c.get()));
    }
    // Unless it is told to, libpm chooses the engine that is safe there.
    pm_options automatic = test::options();
    REQUIRE_FALSE(pm_open(path.c_str(), &automatic));
    REQUIRE(failed_with(ENOTSUP, {"PM_UNSAFE_POWER"}));
    automatic.engine = PM_ENGINE_AUTO;
    {
        test::Container c = test::open(path, automatic);
        REQUIRE(test::stats(c.get()).power_safe);
        REQUIRE(std::string(test::stats(c.get()).engine) == "redo");
    }
    // Whoever only reads is in no danger.
    pm_options reading = test::options(PM_READONLY);
    test::Container reader(pm_open(path.c_str(), &reading));
    REQUIRE(reader);
    REQUIRE(page_word(reader.get(), 0) == 1);
    reader.reset();
    test::Container c = test::open(path, test::options(PM_UNSAFE_POWER));
    REQUIRE(page_word(c.get(), 56) == 1);
    REQUIRE(page_word(c.get(), 62) == 0);
}

TEST_CASE("an ordinary file survives the death of its process")
{
    test::Directory directory(ordinary_directory());
    REQUIRE_FALSE(on_memory(directory.path()));
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("dies_on_an_ordinary_file", {path}));
    test::Container c = test::open(path, test::options(PM_UNSAFE_POWER));
    REQUIRE(test::stats(c.get()).recovered);
    REQUIRE(page_word(c.get(), 0) == 1);
    REQUIRE(page_word(c.get(), 20) == 1);
    REQUIRE(page_word(c.get(), 30) == 0);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("the redo engine takes ordinary files as they are", "[redo]")
{
    test::Directory directory(ordinary_directory());
    REQUIRE_FALSE(on_memory(directory.path()));
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, 64, test::small());
    struct pm_stats before = test::stats(c.get());
    REQUIRE(std::string(before.medium) == "file");
    REQUIRE(std::string(before.engine) == "redo");
    REQUIRE(before.power_safe);
    for (uint64_t i = 0; i < 64; i += 2)
        page_word(c.get(), i) = 1;
    REQUIRE(test::stats(c.get()).rounds == before.rounds);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).rounds == before.rounds + 1);
    REQUIRE(test::stats(c.get()).fences == before.fences + 1);
    page_word(c.get(), 1) = 1;
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE_OK(pm_commit(c.get()));
    for (uint64_t i = 0; i < 64; i++)
        REQUIRE(page_word(c.get(), i) == (i % 2 == 0));
    REQUIRE(test::stats(c.get()).rounds == before.rounds + 1); // none for reading
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, test::options());
    REQUIRE_FALSE(test::stats(c.get()).recovered);
    for (uint64_t i = 0; i < 64; i++)
        REQUIRE(page_word(c.get(), i) == (i % 2 == 0));
}

TEST_CASE("PMEM_IS_PMEM_FORCE=1 says that an ordinary file is persistent memory")
{
    test::Directory directory(ordinary_directory());
    REQUIRE_FALSE(on_memory(directory.path()));
    REQUIRE_CLEAN(test::run("works_as_pmem", {directory / "c.pm"}, {"PMEM_IS_PMEM_FORCE=1"}));
    test::Ended ended = test::run("works_as_pmem", {directory / "d.pm"}, {"PMEM_IS_PMEM_FORCE=0"});
    const char *why = test::mode() == "undo" ? "PM_UNSAFE_POWER" : "\"pmem\"";
    INFO(ended.errors);
    REQUIRE_FALSE(test::exited(ended.status));
    REQUIRE(ended.errors.find(why) != std::string::npos);
}

TEST_CASE("fresh pages where home has copies of pages", "[redo]")
{
    test::Directory directory(ordinary_directory());
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE));
    constexpr size_t SIZE = 24000, PAGE = 4096;
    auto content = [](size_t i) { return (char)(10 + i / PAGE); };
    auto *before = static_cast<char *>(pm_malloc(c.get(), SIZE));
    auto *keeps_the_segment = static_cast<char *>(pm_malloc(c.get(), SIZE));
    REQUIRE((before && keeps_the_segment));
    memset(before, 1, SIZE);
    memset(keeps_the_segment, 1, SIZE);
    REQUIRE_OK(pm_commit(c.get()));
    memset(before, 2, SIZE); // brought home from the log
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(before));
    REQUIRE_OK(pm_commit(c.get()));
    auto *p = static_cast<char *>(pm_malloc(c.get(), SIZE));
    REQUIRE(p == before);
    for (size_t i = 0; i < SIZE; i++)
        p[i] = content(i);
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    REQUIRE_OK(pm_commit(c.get()));
    for (size_t i = 0; i < SIZE; i += PAGE)
        p[i] = 99;
    REQUIRE_OK(pm_rollback(c.get()));
    for (size_t i = 0; i < SIZE; i++)
        if (p[i] != content(i))
            FAIL("byte " << i);
}

// Nothing is stored to it: what a program finds there must not change later.
TEST_CASE("a new object where home is newer than the file", "[redo]")
{
    test::Directory directory(ordinary_directory());
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE));
    constexpr size_t SIZE = 200000;
    auto *before = static_cast<char *>(pm_malloc(c.get(), SIZE));
    REQUIRE(before);
    for (char value : {1, 2}) { // home gets 2 from the log, and the file gets 2 later
        memset(before, value, SIZE);
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_free(before));
    REQUIRE_OK(pm_commit(c.get()));
    auto *p = static_cast<char *>(pm_malloc(c.get(), SIZE));
    REQUIRE(p == before);
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    REQUIRE_OK(pm_commit(c.get()));
    const std::string seen(p, SIZE);
    c.reset();
    c = test::open(path, test::options());
    REQUIRE(memcmp(pm_getroot(c.get()), seen.data(), SIZE) == 0);
}
