// With `concurrent_stores` another thread may store while a rollback is under way. The rollback undoes the store,
// or the store waits until the rollback is over, and belongs to the next transaction. So the rollback undoes the
// earlier ones of a thread's stores, and keeps the later ones.
#include "common/fixture.hpp"
#include "common/process.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

struct journal;
struct txn;

namespace
{

std::function<void()> after_restoring, after_restoring_page; // once

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

int __real_view_restore(struct txn *t, uint64_t offset, uint64_t bytes);
int __wrap_view_restore(struct txn *t, uint64_t offset, uint64_t bytes);
int __wrap_view_restore(struct txn *t, uint64_t offset, uint64_t bytes)
{
    int result = __real_view_restore(t, offset, bytes);
    if (auto then = std::exchange(after_restoring_page, nullptr))
        then();
    return result;
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

// Call `call`. At `moment` another thread stores `value` to `word`. Returns whether the store had to wait. If it
// had, it waits until the call has returned.
template <class Call>
bool waits_beside(std::function<void()> &moment, volatile uint64_t &word, uint64_t value, Call call)
{
    std::atomic<bool> begun = false, stored = false;
    bool waited = false;
    std::thread thread([&] { // not from where signals are blocked: its store may fault
        while (!begun)
            std::this_thread::yield();
        word = value;
        stored = true;
    });
    moment = [&] {
        begun = true;
        auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
        while (!stored && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
        waited = !stored;
    };
    call();
    const bool has_come = begun.exchange(true);
    thread.join();
    if (!has_come)
        throw std::runtime_error("the moment has not come");
    return waited;
}

} // namespace

CHILD_PROCESS(stores_beside_rollback)
{
    test::Container c = test::open_with_pages(arguments[0], 3, concurrent());
    volatile uint64_t &word = test::page_word(c.get(), 1);
    word = 1;
    CHILD_REQUIRE(
        waits_beside(after_restoring, word, 2, [&] { CHILD_REQUIRE(pm_rollback(c.get()) == 0); }));
    CHILD_REQUIRE(word == 2);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

TEST_CASE("a store beside a rollback waits for it, and is in the next commit")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("stores_beside_rollback", {path}));
    test::Container c = test::open(path, concurrent());
    REQUIRE(test::page_word(c.get(), 1) == 2);
}

// Under undo a rollback restores pages that are closed to the program.
TEST_CASE("a store to a page that a rollback is restoring is undone, or waits", "[private]")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 3, concurrent());
    volatile uint64_t &first = test::page_word(c.get(), 0), &last = test::page_word(c.get(), 2);
    const uint64_t before = first;
    first = 1;
    last = 1;
    const bool waited =
        waits_beside(after_restoring_page, first, 2, [&] { REQUIRE_OK(pm_rollback(c.get())); });
    REQUIRE(first == (waited ? 2 : before));
    REQUIRE(last == before);
    first = 3;
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(first == before);
    REQUIRE_OK(pm_check(c.get()));
}

// A thread stores the round's number to each page, in a scattered order, while another rolls back.
TEST_CASE("of a thread's stores a rollback keeps the last ones")
{
    constexpr uint64_t PAGES = 200, STEP = 77; // STEP and PAGES have no common factor
    const bool elsewhere = GENERATE(false, true);
    test::Directory directory;
    std::string path = directory / "c.pm", copy = directory / "copy.pm";
    pm_options how = concurrent();
    how.flags |= PM_MOVABLE;
    test::Container original = test::open_with_pages(path, PAGES, how), other;
    REQUIRE_OK(pm_copy(original.get(), copy.c_str(), 0, 0));
    how.flags = PM_MOVABLE;
    if (elsewhere)
        other = test::open(copy, how);
    pm_container *c = elsewhere ? other.get() : original.get();
    auto word = [&](uint64_t i) -> volatile uint64_t &
    {
        return test::page_word(c, i * STEP % PAGES);
    };
    std::atomic<uint64_t> begun = 0, ended = 0;
    constexpr uint64_t ROUNDS = 200;
    auto *base = &test::page_word(c, 0);
    std::thread storer([&] {
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            while (begun < round)
                std::this_thread::yield();
            for (uint64_t i = 0; i < PAGES; i++)
                base[i * STEP % PAGES * 512] = round;
            ended = round;
        }
    });
    uint64_t wrong = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (uint64_t i = 0; i < PAGES; i++)
            word(i) = UINT64_MAX;
        begun = round;
        std::this_thread::sleep_for(std::chrono::microseconds(round));
        const int result = pm_rollback(c);
        while (ended < round)
            std::this_thread::yield();
        uint64_t i = 0;
        while (i < PAGES && word(i) != round)
            i++;
        for (; i < PAGES; i++)
            wrong += word(i) != round;
        wrong += result != 0;
        if (round % 2 == 0)
            wrong += pm_commit(c) != 0;
        else
            wrong += pm_rollback(c) != 0;
    }
    storer.join();
    REQUIRE(wrong == 0);
    REQUIRE_OK(pm_check(c));
}
