// Who may have a container open: one writer and nobody else, or any number of readers.
#include "common/process.hpp"

#include <cerrno>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using test::failed_with;

CHILD_PROCESS(holds_open)
{
    pm_options options = test::options(arguments[1] == "reading" ? PM_READONLY : 0);
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    test::say("open");
    test::wait_for_end_of_input();
    CHILD_REQUIRE(pm_close(c) == 0);
}

CHILD_PROCESS(fails_to_open)
{
    pm_options options = test::options((unsigned)std::stoul(arguments[1]));
    CHILD_REQUIRE(!pm_open(arguments[0].c_str(), &options));
    CHILD_REQUIRE(failed_with(std::stoi(arguments[2])));
}

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    Fixture()
    {
        test::Container c = test::open(path, test::small());
        void *p = pm_calloc(c.get(), 1, 100);
        REQUIRE(p);
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }
    test::Container open(unsigned flags)
    {
        pm_options options = test::options(flags);
        return test::Container(pm_open(path.c_str(), &options));
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "opened twice in one process")
{
    test::Container first = open(0);
    REQUIRE(first);
    for (unsigned flags : {0u, (unsigned)PM_CREATE, (unsigned)PM_READONLY}) {
        REQUIRE_FALSE(open(flags));
        REQUIRE(failed_with(EBUSY, {path.c_str()}));
    }
    REQUIRE(pm_delete(path.c_str()) == -1);
    REQUIRE(failed_with(EBUSY, {path.c_str()}));
    // The failures took nothing from the first.
    *static_cast<int *>(pm_getroot(first.get())) = 5;
    REQUIRE_OK(pm_commit(first.get()));
    REQUIRE_OK(pm_close(first.release()));
    REQUIRE(*static_cast<int *>(pm_getroot(open(0).get())) == 5);
}

TEST_CASE_METHOD(Fixture, "opened by another process")
{
    SECTION("that writes")
    {
        test::Process other("holds_open", {path, "writing"});
        REQUIRE(other.read_line() == "open");
        for (unsigned flags : {0u, (unsigned)PM_READONLY}) {
            REQUIRE_FALSE(open(flags));
            REQUIRE(failed_with(EBUSY));
        }
        REQUIRE(pm_delete(path.c_str()) == -1);
        REQUIRE(failed_with(EBUSY));
        SECTION("and closes it")
        {
            REQUIRE_CLEAN(other.wait());
        }
        SECTION("and is killed")
        {
            other.kill(SIGKILL);
            REQUIRE_KILLED(SIGKILL, other.wait());
        }
        REQUIRE(open(0));
    }
    SECTION("that reads")
    {
        test::Process other("holds_open", {path, "reading"});
        test::Process third("holds_open", {path, "reading"});
        REQUIRE(other.read_line() == "open");
        REQUIRE(third.read_line() == "open");
        REQUIRE(open(PM_READONLY));
        REQUIRE_FALSE(open(0));
        REQUIRE(failed_with(EBUSY, {"read-only"}));
        REQUIRE(pm_delete(path.c_str()) == -1);
        REQUIRE(failed_with(EBUSY));
        REQUIRE_CLEAN(other.wait());
        REQUIRE_FALSE(open(0));
        REQUIRE_CLEAN(third.wait());
        REQUIRE(open(0));
    }
    SECTION("while we do")
    {
        SECTION("write")
        {
            test::Container c = open(0);
            REQUIRE_CLEAN(test::run("fails_to_open", {path, "0", std::to_string(EBUSY)}));
            REQUIRE_CLEAN(test::run("fails_to_open", {path, "4", std::to_string(EBUSY)}));
        }
        SECTION("read")
        {
            test::Container c = open(PM_READONLY);
            REQUIRE(c);
            REQUIRE_CLEAN(test::run("fails_to_open", {path, "0", std::to_string(EBUSY)}));
        }
    }
}

TEST_CASE_METHOD(Fixture, "a second reader in one process needs the same addresses")
{
    test::Container first = open(PM_READONLY);
    REQUIRE(first);
    REQUIRE_FALSE(open(PM_READONLY));
    REQUIRE(failed_with(EADDRINUSE, {path.c_str()}));
    first.reset();
    REQUIRE(open(PM_READONLY));
}

TEST_CASE_METHOD(Fixture, "a copy beside its original")
{
    std::string copy = directory / "copy.pm";
    std::filesystem::copy_file(path, copy);
    test::Container c = open(0);
    REQUIRE_FALSE(pm_open(copy.c_str(), nullptr));
    REQUIRE(failed_with(EADDRINUSE, {copy.c_str()}));
    c.reset();
    REQUIRE(test::Container(pm_open(copy.c_str(), nullptr)));
}

TEST_CASE_METHOD(Fixture, "many containers at once are independent")
{
    std::vector<test::Container> all;
    for (int i = 0; i < 20; i++) {
        all.push_back(test::open(directory / std::to_string(i), test::small()));
        int *p = static_cast<int *>(pm_malloc(all.back().get(), sizeof(int)));
        REQUIRE(p);
        *p = i;
        REQUIRE_OK(pm_setroot(all.back().get(), p, 0));
        REQUIRE(pm_contains(all.back().get(), p));
        REQUIRE(pm_contains(nullptr, p));
        REQUIRE_FALSE(pm_contains(all.front().get(), i > 0 ? p : nullptr));
        if (i % 2 == 0)
            REQUIRE_OK(pm_commit(all.back().get()));
        else
            REQUIRE_OK(pm_rollback(all.back().get()));
    }
    all.clear();
    for (int i = 0; i < 20; i++) {
        test::Container c = test::open(directory / std::to_string(i), test::options());
        int *p = static_cast<int *>(pm_getroot(c.get()));
        REQUIRE((i % 2 == 0 ? p && *p == i : !p));
    }
}

TEST_CASE_METHOD(Fixture, "pm_delete deletes, and the name can be used again")
{
    REQUIRE_OK(pm_delete(path.c_str()));
    REQUIRE(std::filesystem::is_empty(directory.path()));
    REQUIRE_FALSE(open(0));
    REQUIRE(failed_with(ENOENT));
    test::Container c = test::open(path, test::small());
    REQUIRE_FALSE(pm_getroot(c.get()));
}
