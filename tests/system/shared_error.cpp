// The kernel reports an error of write-back to one fdatasync(2) only. So a second thread waits while the
// first one syncs the file, and then gets the same error. Every container here is on an ordinary file.
#include "common/file_medium.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <thread>

using test::failed_with;
using test::page_word;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, 10, test::small());

    Fixture()
    {
        while (test::stats(c.get()).segments_free > 0)
            REQUIRE(pm_malloc(c.get(), 64 << 10));
        REQUIRE_OK(pm_commit(c.get()));
    }
    // A commit that nobody has waited for.
    pm_ticket store(uint64_t value)
    {
        page_word(c.get(), 0) = value;
        pm_ticket ticket = pm_commit_async(c.get());
        REQUIRE(ticket.container);
        return ticket;
    }
    // Only the next sync fails. It takes long enough for another thread to come.
    void fail_next_sync()
    {
        test::file_medium = {};
        test::file_medium.sync_fails = 1;
        test::file_medium.sync_error = EIO;
        test::file_medium.once = true;
        test::file_medium.sync_us = 100000;
    }
    static void await_sync()
    {
        while (__atomic_load_n(&test::file_medium.syncs, __ATOMIC_ACQUIRE) == 0)
            std::this_thread::yield();
    }
    ~Fixture() { test::file_medium = {}; }
};

} // namespace

TEST_CASE_METHOD(Fixture, "a file that grows while a commit is waited for gets its error", "[redo]")
{
    pm_ticket ticket = store(1);
    fail_next_sync();
    int waited = 0;
    std::thread other([&] { waited = pm_wait(ticket); });
    await_sync();
    void *object = pm_malloc(c.get(), 64 << 10); // grows the file, and syncs its length
    other.join();
    REQUIRE_FALSE(object);
    REQUIRE(failed_with(EIO, {path.c_str()}));
    REQUIRE(waited == -1);
    REQUIRE(test::file_medium.syncs == 1);
}

TEST_CASE_METHOD(Fixture, "a commit that is waited for while the file grows gets its error",
                 "[redo]")
{
    pm_ticket ticket = store(1);
    fail_next_sync();
    void *object = &object;
    std::thread other([&] { object = pm_malloc(c.get(), 64 << 10); });
    await_sync();
    int waited = pm_wait(ticket);
    other.join();
    REQUIRE(waited == -1);
    REQUIRE(failed_with(EIO, {path.c_str()}));
    REQUIRE_FALSE(object);
    REQUIRE(test::file_medium.syncs == 1);
}

TEST_CASE_METHOD(Fixture, "an error of a round is that of all its commits", "[redo]")
{
    pm_ticket ticket = store(1);
    fail_next_sync();
    constexpr int THREADS = 4;
    int waited[THREADS] = {};
    std::vector<std::thread> others;
    for (int &result : waited)
        others.emplace_back([&result, ticket] { result = pm_wait(ticket); });
    for (std::thread &other : others)
        other.join();
    for (int result : waited)
        REQUIRE(result == -1);
    REQUIRE(pm_wait(ticket) == -1);
    REQUIRE(test::file_medium.syncs == 1);
}
