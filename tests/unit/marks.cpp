// What is noted of stores that compiled code announces.
#include "common/fixture.hpp"
#include "unit/page_state.h"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <ctime>
#include <mutex>
#include <thread>

struct txn;

namespace
{

bool rollback_fails;

sigjmp_buf before_stores;
volatile sig_atomic_t armed;

void leave(int)
{
    if (armed) {
        armed = 0;
        siglongjmp(before_stores, 1);
    }
}

// Store to the first word of each line from `from` on, until a signal some 10 us later ends it: whether
// it did.
bool store_until_signal(timer_t timer, volatile uint64_t *lines, size_t from, size_t count,
                        uint64_t value, long ns)
{
    if (sigsetjmp(before_stores, 1) != 0)
        return true;
    itimerspec soon = {{0, 0}, {0, ns}};
    armed = 1;
    timer_settime(timer, 0, &soon, nullptr);
    for (size_t i = 0; i < 3000 && armed; i++)
        lines[(from + i) % count * 8] = value;
    armed = 0;
    return false;
}

} // namespace

extern "C" {
int __real_view_rollback(struct txn *t);
int __wrap_view_rollback(struct txn *t);
int __wrap_view_rollback(struct txn *t)
{
    return rollback_fails ? (errno = ENOMEM, -1) : __real_view_rollback(t);
}
}

TEST_CASE("a line that several threads mark at once is noted once")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 2, test::small());
    std::mutex held;
    held.lock();
    std::thread other([&] { std::lock_guard wait(held); }); // so that locked instructions are used
    volatile uint64_t *first = &test::page_word(c.get(), 0), *second = first + 8;
    CHECK(mark_at_once(c.get(), (const void *)first, 100) == 1);
    *first = 1;
    CHECK(mark_at_once(c.get(), (const void *)second, 100) == 2);
    *second = 2;
    held.unlock();
    other.join();
    struct pm_stats before = test::stats(c.get());
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).lines_logged == before.lines_logged + 2);
    CHECK(mark_at_once(c.get(), (const void *)first, 100) == 1); // anew in each transaction
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a signal whose handler leaves a store by a jump costs no store its mark")
{
    constexpr size_t LINES = 1 << 14, ROUNDS = 2000;
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    auto *lines = static_cast<volatile uint64_t *>(pm_calloc(c.get(), LINES, 64));
    REQUIRE(lines);
    REQUIRE_OK(pm_setroot(c.get(), const_cast<uint64_t *>(lines), 0));
    REQUIRE_OK(pm_commit(c.get()));
    std::vector<uint64_t> expected(LINES);
    bool several = GENERATE(false, true);
    std::mutex held;
    held.lock();
    sigset_t alarm, saved;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, &saved); // the signal is for this thread
    std::thread other;
    if (several)
        other = std::thread([&] { std::lock_guard wait(held); });
    auto *old = signal(SIGALRM, leave);
    pthread_sigmask(SIG_SETMASK, &saved, nullptr);
    timer_t timer;
    REQUIRE(timer_create(CLOCK_MONOTONIC, nullptr, &timer) == 0);
    size_t jumps = 0;
    for (size_t round = 1; round <= ROUNDS; round++) {
        size_t from = round * 997 % LINES;
        jumps +=
            store_until_signal(timer, lines, from, LINES, round, 1000 + (long)round * 37 % 30000);
        for (size_t i = from; i < from + 3000; i++)
            lines[i % LINES * 8] = expected[i % LINES] = round;
        REQUIRE_OK(pm_commit(c.get()));
    }
    timer_delete(timer);
    signal(SIGALRM, old);
    held.unlock();
    if (several)
        other.join();
    REQUIRE(jumps > 0);
    c.reset();
    c = test::open(path, test::small());
    lines = static_cast<volatile uint64_t *>(pm_getroot(c.get()));
    size_t lost = 0;
    for (size_t i = 0; i < LINES; i++)
        lost += lines[i * 8] != expected[i];
    REQUIRE(lost == 0);
}

// As if the kernel refused to open a page for the rollback. So the marks and kinds stay until the addresses
// are given back.
TEST_CASE(
    "a container that lies where another was closed without a rollback begins without its kinds")
{
    struct Pair {
        Pair *self;
        uint64_t number;
    };
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    auto *pair = static_cast<Pair *>(pm_calloc(c.get(), 1, sizeof(Pair)));
    REQUIRE_OK(pm_setroot(c.get(), pair, 0));
    REQUIRE_OK(pm_commit(c.get()));
    pair->self = pair;
    rollback_fails = true;
    REQUIRE(pm_close(c.release()) == -1);
    rollback_fails = false;
    c = test::open(path, test::small(PM_MOVABLE));
    REQUIRE(pm_getroot(c.get()) == pair);
    REQUIRE(pair->self == nullptr);
    pair->number = 1;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_FALSE(pm_next_pointer(pair, pair + 1));
}
