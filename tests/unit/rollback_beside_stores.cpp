// With `concurrent_stores` another thread may store while a rollback is under way. A rollback undoes such a
// store or keeps it; a store that is kept belongs to the next commit, and to the next rollback.
#include "common/fixture.hpp"
#include "common/process.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <unistd.h>
#include <utility>

struct journal;

namespace
{

std::function<void()> after_restoring; // once

} // namespace

extern "C" {
void __real_journal_rollback(struct journal *j);
void __wrap_journal_rollback(struct journal *j);
void __wrap_journal_rollback(struct journal *j)
{
    __real_journal_rollback(j);
    if (auto then = std::exchange(after_restoring, nullptr))
        then();
}
}

namespace
{

pm_options concurrent()
{
    pm_options o = test::small();
    o.concurrent_stores = true;
    return o;
}

// Call `call`. When it has restored the pages, another thread stores `value` to `word`. The store may wait
// until the call has returned.
template <class Call> void beside_store(volatile uint64_t &word, uint64_t value, Call call)
{
    std::thread thread;
    std::atomic<bool> stored = false;
    after_restoring = [&] {
        thread = std::thread([&] {
            word = value;
            stored = true;
        });
        auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
        while (!stored && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
    };
    call();
    thread.join();
}

} // namespace

CHILD_PROCESS(stores_beside_rollback)
{
    test::Container c = test::open_with_pages(arguments[0], 3, concurrent());
    volatile uint64_t &word = test::page_word(c.get(), 1);
    word = 1;
    beside_store(word, 2, [&] { CHILD_REQUIRE(pm_rollback(c.get()) == 0); });
    CHILD_REQUIRE(word == 2);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

TEST_CASE("a store that a rollback keeps is in the next commit")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("stores_beside_rollback", {path}));
    test::Container c = test::open(path, concurrent());
    REQUIRE(test::page_word(c.get(), 1) == 2);
}

TEST_CASE("a store that pm_clear() keeps is undone by the next rollback")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 3, concurrent());
    volatile uint64_t &word = test::page_word(c.get(), 1);
    const uint64_t before = word;
    word = 1;
    beside_store(word, 2, [&] { REQUIRE_OK(pm_clear(c.get())); });
    REQUIRE(word == 2);
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(word == before);
}
