// pthread_cancel(3). A thread that ended inside libpm would leave locks held and work half done, so no
// call is a cancellation point, whatever it waits for; nor is a page fault.
#include "common/file_medium.hpp"
#include "common/fixture.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <pthread.h>

using test::page_word;

namespace
{

struct Call {
    const std::function<void()> &function;
    bool returned = false;
};

void *cancelled_before(void *argument)
{
    Call &call = *static_cast<Call *>(argument);
    pthread_cancel(pthread_self());
    call.function();
    call.returned = true;
    pthread_testcancel();
    return nullptr;
}

// Whether a thread that has been cancelled returns from this, and then ends.
bool returns(const std::function<void()> &function)
{
    Call call{function};
    pthread_t thread;
    void *result = nullptr;
    pthread_create(&thread, nullptr, cancelled_before, &call);
    pthread_join(thread, &result);
    return call.returned && result == PTHREAD_CANCELED;
}

} // namespace

TEST_CASE("a thread that is cancelled ends after the call, not in it")
{
    test::Directory directory;
    std::string path = directory / "c.pm", copy = directory / "copy.pm";
    test::Container c = test::open_with_pages(path, 600, test::small(PM_CREATE | PM_MOVABLE));
    uint64_t value = 0;
    auto change = [&] {
        value++;
        for (uint64_t page = 0; page < 600; page++)
            page_word(c.get(), page) = value;
    };
    int result = -1;
    auto commit = [&] { result = pm_commit(c.get()); };

    SECTION("commit")
    {
        change();
        CHECK(returns(commit));
        CHECK(result == 0);
    }
    SECTION("a commit that waits for another thread's round")
    {
        test::file_medium.sync_us = 50000;
        pm_ticket ticket[2];
        for (pm_ticket &t : ticket) {
            change();
            t = pm_commit_async(c.get());
        }
        std::atomic<int> waited{0};
        pthread_t other[2];
        std::function<void()> wait = [&] { waited += pm_wait(ticket[1]) == 0; };
        Call call[2] = {{wait}, {wait}};
        for (int i = 0; i < 2; i++)
            pthread_create(&other[i], nullptr, cancelled_before, &call[i]);
        for (pthread_t thread : other)
            pthread_join(thread, nullptr);
        test::file_medium = {};
        CHECK(waited == 2);
    }
    SECTION("a store")
    {
        CHECK(returns(change));
    }
    SECTION("rollback")
    {
        change();
        value--;
        CHECK(returns([&] { result = pm_rollback(c.get()); }));
        CHECK(result == 0);
    }
    SECTION("an allocation for which the file grows")
    {
        CHECK(returns([&] { result = pm_malloc(c.get(), 2 << 20) ? 0 : -1; }));
        CHECK(result == 0);
    }
    SECTION("compaction")
    {
        CHECK(returns([&] { result = pm_compact(c.get(), nullptr, nullptr, nullptr); }));
        CHECK(result == 0);
    }
    SECTION("a commit that warns of a pointer")
    {
        c.reset();
        pm_options how = test::small(PM_MOVABLE);
        how.foreign_pointers = PM_FOREIGN_WARN;
        c = test::open(path, how);
        auto **pointer = static_cast<void **>(pm_calloc(c.get(), 1, sizeof(void *)));
        REQUIRE_OK(pm_mark_pointer(pointer));
        *pointer = &result;
        REQUIRE(returns(commit)); // and releases the lock that it holds while it prints
        CHECK(result == 0);
        *pointer = nullptr;
    }
    SECTION("a check")
    {
        CHECK(returns([&] { result = pm_check(c.get()); }));
        CHECK(result == 0);
    }
    SECTION("an access to a page that lies elsewhere; open, close, delete")
    {
        change();
        REQUIRE_OK(pm_commit(c.get()));
        std::filesystem::copy_file(path, copy);
        pm_options how = test::small(PM_MOVABLE | PM_ACCEPT_COPY);
        pm_container *other = nullptr;
        uint64_t found = 0;
        CHECK(returns([&] { other = pm_open(copy.c_str(), &how); }));
        REQUIRE(other);
        CHECK(returns([&] { found = page_word(other, 500); }));
        CHECK(found == value);
        CHECK(returns([&] { result = pm_close(other); }));
        CHECK(result == 0);
        CHECK(returns([&] { result = pm_delete(copy.c_str()); }));
        CHECK(result == 0);
    }

    // And everything goes on.
    change();
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, test::small());
    REQUIRE(page_word(c.get(), 599) == value);
}
