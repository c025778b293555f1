// What a child of fork(2) inherits of its parent's containers: nothing. unit/fork.cpp has what it
// can do, namely nothing, and what the parent notices, namely nothing.
#include "common/process.hpp"

#include <cerrno>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, 20, test::small());

    // Everything is as it was, and goes on.
    void require_alive(uint64_t page0)
    {
        REQUIRE(test::page_word(c.get(), 0) == page0);
        REQUIRE_OK(pm_check(c.get()));
        test::page_word(c.get(), 0) = page0 + 1;
        test::page_word(c.get(), 13) = page0 + 2;
        REQUIRE(pm_malloc(c.get(), 100000));
        REQUIRE_OK(pm_commit(c.get()));
        c.reset();
        c = test::open(path, test::options());
        REQUIRE(test::page_word(c.get(), 0) == page0 + 1);
        REQUIRE(test::page_word(c.get(), 13) == page0 + 2);
        REQUIRE_OK(pm_check(c.get()));
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "a child finds no byte of the container, neither under another address")
{
    int status = test::in_child([&] {
        alarm(10);
        FILE *maps = fopen("/proc/self/maps", "r");
        char line[4096];
        while (maps && fgets(line, sizeof line, maps))
            CHILD_REQUIRE(!strstr(line, path.c_str()));
        CHILD_REQUIRE(maps);
        // Nor is its descriptor open.
        for (int fd = 3; fd < 100; fd++) {
            std::string link = "/proc/self/fd/" + std::to_string(fd);
            ssize_t n = readlink(link.c_str(), line, sizeof line);
            CHILD_REQUIRE(n < 0 || std::string(line, (size_t)n) != path);
        }
    });
    REQUIRE(test::exited(status));
    require_alive(0);
}

TEST_CASE_METHOD(Fixture, "in a child every call fails")
{
    void *object = pm_getroot(c.get());
    pm_options options = test::small();
    struct pm_stats stats = {};
    stats.size = sizeof stats;
    pm_container *p = c.get();
    const std::pair<const char *, std::function<bool()>> calls[] = {
        {"pm_open", [&] { return !pm_open((path + "2").c_str(), &options); }},
        {"pm_clear", [&] { return pm_clear(p) == -1; }},
        {"pm_malloc", [&] { return !pm_malloc(p, 10); }},
        {"pm_calloc", [&] { return !pm_calloc(p, 10, 10); }},
        {"pm_aligned_alloc", [&] { return !pm_aligned_alloc(p, 64, 10); }},
        {"pm_realloc", [&] { return !pm_realloc(object, 10); }},
        {"pm_free", [&] { return pm_free(object) == -1; }},
        {"pm_usable_size", [&] { return pm_usable_size(object) == 0; }},
        {"pm_reserve", [&] { return pm_reserve(p, 10) == -1; }},
        {"pm_commit", [&] { return pm_commit(p) == -1; }},
        {"pm_rollback", [&] { return pm_rollback(p) == -1; }},
        {"pm_dirty", [&] { return pm_dirty(object, 10) == -1; }},
        {"pm_setroot", [&] { return pm_setroot(p, nullptr, 0) == -1; }},
        {"pm_getroot", [&] { return !pm_getroot(p); }},
        {"pm_stats", [&] { return pm_stats(p, &stats) == -1; }},
        {"pm_check", [&] { return pm_check(p) == -1; }},
        {"pm_close", [&] { return pm_close(p) == -1; }},
    };
    test::page_word(p, 0) = 1;
    for (const auto &[name, fails] : calls) {
        INFO(name);
        int status = test::in_child([&fails = fails] {
            alarm(10);
            errno = 0;
            if (!fails())
                _exit(1);
            _exit(test::failed_with(ECHILD, {"fork"}) ? 0 : 2 + errno % 64);
        });
        CHECK(WEXITSTATUS(status) == 0); // 1: it succeeded; else 2 and the errno it failed with
        CHECK(WIFEXITED(status));
    }
    require_alive(1);
}

TEST_CASE_METHOD(Fixture, "a child of a reader")
{
    c.reset();
    pm_options reading = test::options(PM_READONLY);
    c.reset(pm_open(path.c_str(), &reading));
    REQUIRE(c);
    volatile uint64_t &word = test::page_word(c.get(), 0);
    REQUIRE(test::killed(test::in_child([&] { word = 1; }), SIGSEGV));
    REQUIRE(test::exited(
        test::in_child([&] { CHILD_REQUIRE(pm_check(c.get()) == -1 && errno == ECHILD); })));
    REQUIRE_OK(pm_check(c.get()));
}

// arguments: a container of its own, and the parent's.
CHILD_PROCESS(begins_anew)
{
    pm_options options = test::small();
    CHILD_REQUIRE(!pm_open(arguments[1].c_str(), nullptr));
    CHILD_REQUIRE(test::failed_with(EBUSY));
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    void *p = pm_calloc(c, 1, 5000);
    CHILD_REQUIRE(p);
    CHILD_REQUIRE(pm_setroot(c, p, 0) == 0);
    CHILD_REQUIRE(pm_commit(c) == 0);
    memset(p, 1, 5000);
    CHILD_REQUIRE(pm_commit(c) == 0);
    CHILD_REQUIRE(pm_close(c) == 0);
}

TEST_CASE_METHOD(Fixture, "a child may exec a program that uses libpm")
{
    std::string own = directory / "own.pm";
    test::page_word(c.get(), 0) = 1;
    REQUIRE(test::exited(test::in_child([&] {
        execl("/proc/self/exe", "test", "--child", "begins_anew", own.c_str(), path.c_str(),
              nullptr);
    })));
    require_alive(1);
    test::Container made = test::open(own, test::options());
    REQUIRE(*static_cast<char *>(pm_getroot(made.get())) == 1);
}
