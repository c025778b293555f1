// A signal arrives while libpm holds the lock of the pages. Its handler must not run before libpm has released
// the lock: the handler may store to a page, and to open that page takes the lock.
// Linked with --wrap for lock_acquire_masked().
#include "common/process.hpp"

#include <csignal>
#include <thread>
#include <unistd.h>

namespace
{

constexpr uint64_t PAGES = 100;

volatile uint64_t *words; // the first of each page, in which there are 512
volatile sig_atomic_t signalling;
uint64_t handled; // how many stores, each to another page

void store(int)
{
    words[handled * 512] = handled + 1;
    handled++;
}

} // namespace

extern "C" {

struct lock;
void __real_lock_acquire_masked(struct lock *lock, sigset_t *saved);

void __wrap_lock_acquire_masked(struct lock *lock, sigset_t *saved)
{
    __real_lock_acquire_masked(lock, saved);
    if (signalling) {
        signalling = false;
        raise(SIGUSR1); // waits until it is no longer blocked
    }
}
}

CHILD_PROCESS(is_signalled_in_calls)
{
    std::thread([] { // in a deadlock all signals are blocked
        sleep(20);
        _exit(3);
    }).detach();
    test::Container c = test::open_with_pages(arguments[0], PAGES, test::small());
    words = &test::page_word(c.get(), 0);
    CHILD_REQUIRE(signal(SIGUSR1, store) != SIG_ERR);
    uint64_t expected = 0;
    for (int i = 0; i < 30; i++) {
        signalling = true;
        switch (i % 3) {
        case 0:
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
            break;
        case 1:
            CHILD_REQUIRE(pm_dirty((const void *)(words + 99 * 512), 8) == 0);
            break;
        default:
            CHILD_REQUIRE(pm_reserve(c.get(), 100000) == 0);
        }
        expected += !signalling; // a call may do without the lock
        CHILD_REQUIRE(handled == expected);
    }
    CHILD_REQUIRE(expected >= 10); // commits need it
    for (uint64_t i = 0; i < expected; i++)
        CHILD_REQUIRE(words[i * 512] == i + 1);
}

TEST_CASE("a signal that arrives under the lock of the pages is handled when that is released")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("is_signalled_in_calls", {directory / "c.pm"}));
}
