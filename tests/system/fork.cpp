// A child of fork(2) has no container: not to store to, not to call for, not to keep locked.
#include "common/process.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using test::failed_with;
using test::page_word;

namespace
{

// The status of a forked child that does this.
template <typename Body> int forked(Body body)
{
    pid_t child = fork();
    CHILD_REQUIRE(child >= 0);
    if (child == 0) {
        alarm(20);
        body();
        _exit(0);
    }
    int status;
    CHILD_REQUIRE(waitpid(child, &status, 0) == child);
    return status;
}

template <typename Body> bool dies_of_segv(Body body)
{
    return test::killed(forked(body), SIGSEGV);
}

} // namespace

CHILD_PROCESS(forks)
{
    test::Container c = test::open_with_pages(arguments[0], 64, test::small());
    page_word(c.get(), 0) = 1; // an open page
    // Segments mapped after the first: by growth, small and large, and by the log.
    char *small = static_cast<char *>(pm_malloc(c.get(), 100));
    char *large = static_cast<char *>(pm_malloc(c.get(), 3 << 20));
    CHILD_REQUIRE(small && large);
    small[0] = large[0] = large[(3 << 20) - 1] = 7;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    for (uint64_t i = 0; i < 40; i++)
        page_word(c.get(), 10 + i) = 2;
    char *root = static_cast<char *>(pm_getroot(c.get()));
    char *base = reinterpret_cast<char *>((uintptr_t)root & ~((uintptr_t{1} << 30) - 1));
    auto store = [](char *p) { *static_cast<volatile char *>(p) = 9; };
    auto load = [](char *p) { (void)*static_cast<volatile char *>(p); };

    for (char *p : {root, root + 12 * 4096, root + 60 * 4096, small, large, large + (3 << 20) - 1,
                    base, base + 3 * 4096, base + 65536, base + 2 * 65536}) {
        CHILD_REQUIRE(dies_of_segv([&] { store(p); }));
        CHILD_REQUIRE(dies_of_segv([&] { load(p); }));
    }
    CHILD_REQUIRE(test::exited(forked([&] {
        struct pm_stats stats{};
        stats.size = sizeof stats;
        auto refused = [](bool failed) { return failed && failed_with(ECHILD, {"fork"}); };
        CHILD_REQUIRE(refused(!pm_malloc(c.get(), 1)));
        CHILD_REQUIRE(refused(!pm_calloc(c.get(), 1, 1)));
        CHILD_REQUIRE(refused(!pm_aligned_alloc(c.get(), 16, 1)));
        CHILD_REQUIRE(refused(pm_reserve(c.get(), 1) == -1));
        CHILD_REQUIRE(refused(pm_commit(c.get()) == -1));
        CHILD_REQUIRE(refused(pm_rollback(c.get()) == -1));
        CHILD_REQUIRE(refused(pm_clear(c.get()) == -1));
        CHILD_REQUIRE(refused(pm_setroot(c.get(), nullptr, 0) == -1));
        CHILD_REQUIRE(refused(!pm_getroot(c.get())));
        CHILD_REQUIRE(refused(pm_stats(c.get(), &stats) == -1));
        CHILD_REQUIRE(refused(pm_check(c.get()) == -1));
        CHILD_REQUIRE(refused(pm_close(c.get()) == -1));
        CHILD_REQUIRE(refused(!pm_open(arguments[0].c_str(), nullptr)));
        CHILD_REQUIRE(refused(pm_delete(arguments[0].c_str()) == -1));
        // These know no container any more.
        CHILD_REQUIRE(pm_free(small) == -1 && pm_dirty(small, 1) == -1);
        CHILD_REQUIRE(!pm_realloc(small, 2) && pm_usable_size(small) == 0);
    })));
    // A grandchild is no better, and exec(2) makes all well.
    CHILD_REQUIRE(test::exited(forked([&] { CHILD_REQUIRE(dies_of_segv([&] { store(root); })); })));

    // The parent notices nothing.
    CHILD_REQUIRE(page_word(c.get(), 0) == 1 && page_word(c.get(), 49) == 2);
    CHILD_REQUIRE(small[0] == 7 && large[0] == 7 && large[(3 << 20) - 1] == 7);
    page_word(c.get(), 55) = 3;
    CHILD_REQUIRE(pm_commit(c.get()) == 0 && pm_check(c.get()) == 0);
    page_word(c.get(), 55) = 4;
    CHILD_REQUIRE(pm_rollback(c.get()) == 0);
    CHILD_REQUIRE(page_word(c.get(), 55) == 3);
    CHILD_REQUIRE(pm_malloc(c.get(), 5 << 20) != nullptr);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
}

CHILD_PROCESS(has_a_child_that_stays)
{
    test::Container c = test::open_with_pages(arguments[0], 64, test::small());
    page_word(c.get(), 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    page_word(c.get(), 0) = 2;
    if (fork() == 0) {
        alarm(30); // should the test fail to end it
        test::say(std::to_string(getpid()).c_str());
        pause();
    }
    pause();
}

CHILD_PROCESS(runs_itself_again)
{
    test::Container c = test::open_with_pages(arguments[0], 64, test::small());
    // The path by fork and exec, with a container of its own at the end.
    test::Ended ended = test::run("creates_one", {arguments[0] + ".other"});
    CHILD_REQUIRE(test::exited(ended.status));
    page_word(c.get(), 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
}

CHILD_PROCESS(creates_one)
{
    pm_options options = test::small();
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c && pm_malloc(c, 1) && pm_commit(c) == 0 && pm_close(c) == 0);
}

// A thread commits and stores while another forks.
CHILD_PROCESS(forks_while_busy)
{
    pm_options how = test::small();
    how.concurrent_stores = !test::stores();
    test::Container c = test::open_with_pages(arguments[0], 64, how);
    pm_container *raw = c.get();
    static std::atomic<bool> stop{false};
    pthread_t thread;
    auto busy = [](void *p) -> void * {
        auto *c = static_cast<pm_container *>(p);
        for (uint64_t i = 0; !stop; i++) {
            page_word(c, i % 64) = i;
            if (i % 5 == 0)
                CHILD_REQUIRE(pm_commit(c) == 0);
            if (i % 7 == 0)
                CHILD_REQUIRE(pm_free(pm_malloc(c, 100)) == 0);
        }
        return nullptr;
    };
    CHILD_REQUIRE(pthread_create(&thread, nullptr, busy, raw) == 0);
    for (int i = 0; i < 100; i++)
        CHILD_REQUIRE(test::exited(forked([&] { CHILD_REQUIRE(pm_commit(raw) == -1); })));
    stop = true;
    pthread_join(thread, nullptr);
    CHILD_REQUIRE(pm_check(raw) == 0);
}

TEST_CASE("a child's store is a clean SIGSEGV, its calls fail, its parent goes on")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("forks", {path}));
    test::Container c = test::open(path, test::options());
    REQUIRE(page_word(c.get(), 55) == 3);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a child that outlives a killed parent does not keep the lock")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Process parent("has_a_child_that_stays", {path});
    std::string id = parent.read_line();
    REQUIRE(!id.empty());
    pid_t child = std::stoi(id);
    REQUIRE_FALSE(pm_open(path.c_str(), nullptr));
    REQUIRE(failed_with(EBUSY));
    parent.kill(SIGKILL);
    // Its output stays open as long as the child lives, so only the parent's end is waited for.
    siginfo_t info;
    REQUIRE(waitid(P_PID, (id_t)parent.id(), &info, WEXITED | WNOWAIT) == 0);
    REQUIRE(kill(child, 0) == 0);
    {
        test::Container c = test::open(path, test::options());
        REQUIRE(test::stats(c.get()).recovered);
        REQUIRE(page_word(c.get(), 0) == 1);
        REQUIRE_OK(pm_check(c.get()));
    }
    REQUIRE(kill(child, SIGKILL) == 0);
    REQUIRE_KILLED(SIGKILL, parent.wait());
}

TEST_CASE("fork and exec, and a fork amid commits")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("runs_itself_again", {directory / "c.pm"}));
    REQUIRE(test::Container(pm_open((directory / "c.pm.other").c_str(), nullptr)));
    REQUIRE_CLEAN(test::run("forks_while_busy", {directory / "busy.pm"}));
}

CHILD_PROCESS(reader_leaves_an_orphan)
{
    test::Container c = test::open(arguments[0], test::options(PM_READONLY));
    pid_t child = fork();
    CHILD_REQUIRE(child >= 0);
    if (child == 0) {
        CHILD_REQUIRE(pm_getroot(c.get()) == nullptr && failed_with(ECHILD));
        test::say("orphan");
        test::wait_for_end_of_input();
        _exit(0);
    }
    pause();
}

TEST_CASE("a child of a process that only reads knows it too, and keeps no lock")
{
    test::Directory directory;
    std::string path = directory / "c";
    test::open(path, test::small());
    test::Process reader("reader_leaves_an_orphan", {path});
    REQUIRE(reader.read_line() == "orphan");
    reader.kill(SIGKILL);
    reader.wait();
    test::open(path, test::options()); // for writing, while the orphan lives
}
