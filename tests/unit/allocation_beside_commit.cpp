// What libpm itself stores into a new object belongs to the transaction that it was announced in, also
// where another thread commits meanwhile. A line that pm_dirty() marks meanwhile is in the list of marks.
#include "base/marks.h"
#include "common/fixture.hpp"
#include "unit/beside.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sys/mman.h>
#include <thread>
#include <utility>

struct txn;

namespace
{

std::function<void()> after_announcing; // once
std::atomic<bool> committed;

} // namespace

extern "C" {
int __real_txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes);

int __wrap_txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes);
int __wrap_txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    int error = __real_txn_dirty(t, offset, bytes);
    if (auto then = std::exchange(after_announcing, nullptr))
        then();
    return error;
}
}

namespace
{

constexpr size_t bytes = 1000;

// A container with an object of `old`, which is the root, and where new objects will be one that had ones
// when it was freed.
test::Container container(const std::string &path, unsigned char old)
{
    test::Container c = test::open(path, test::small());
    void *root = pm_malloc(c.get(), bytes), *freed = pm_malloc(c.get(), 2 * bytes);
    REQUIRE((root && freed));
    memset(root, old, bytes);
    memset(freed, 255, 2 * bytes);
    REQUIRE_OK(pm_setroot(c.get(), root, bytes));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(freed));
    REQUIRE_OK(pm_commit(c.get()));
    return c;
}

// Have another thread commit between the announcement of `call`'s stores and the stores: until it has, or
// waits for the call.
template <class Call> void beside_commit(pm_container *c, Call call)
{
    int result = -1;
    std::thread thread;
    other_waits = committed = false;
    after_announcing = [&] {
        thread = std::thread([&] {
            is_other = true;
            result = pm_commit(c);
            committed = true;
        });
        while (!other_waits && !committed)
            std::this_thread::yield();
    };
    call();
    thread.join();
    REQUIRE(result == 0);
}

} // namespace

TEST_CASE("what is zeroed while another thread commits is zero after the next commit")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = container(path, 7);
    void *p = nullptr;
    beside_commit(c.get(), [&] { p = pm_calloc(c.get(), 2, bytes); });
    REQUIRE(p);
    REQUIRE_OK(pm_setroot(c.get(), p, bytes));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, test::small());
    REQUIRE(are_all(pm_getroot(c.get()), bytes, 0));
}

TEST_CASE("what is copied while another thread commits is there after the next commit")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = container(path, 7);
    beside_commit(c.get(), [&] { REQUIRE(pm_realloc(pm_getroot(c.get()), 2 * bytes)); });
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, test::small());
    REQUIRE(are_all(pm_getroot(c.get()), bytes, 7));
}

namespace
{

constexpr size_t PAGE = 4096;
char *guarded;                // a page of the marks table that may only be read
std::atomic<bool> announcing; // a thread is about to set a mark there

void let_commit(int)
{
    if (!guarded || mprotect(std::exchange(guarded, nullptr), PAGE, PROT_READ | PROT_WRITE) != 0)
        abort();
    announcing = true;
    while (!other_waits && !committed)
        std::this_thread::yield();
}

} // namespace

TEST_CASE("a store is committed that is announced between the steps of another thread's commit")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    struct sigaction ours = {}, before;
    ours.sa_handler = let_commit;
    REQUIRE(sigaction(SIGSEGV, &ours, &before) == 0);
    test::Container c = container(path, 7); // passes on what is no container's
    auto *root = static_cast<char *>(pm_getroot(c.get()));
    int result = -1;
    other_waits = committed = announcing = false;
    std::thread thread([&] {
        is_other = true;
        while (!announcing)
            std::this_thread::yield();
        result = pm_commit(c.get());
        committed = true;
    });
    guarded = reinterpret_cast<char *>((uintptr_t)mark_of(root) & ~(PAGE - 1));
    const bool is_guarded = mprotect(guarded, PAGE, PROT_READ) == 0;
    const int announced = pm_dirty(root, 1);
    announcing = true;
    thread.join();
    REQUIRE((is_guarded && !guarded && announced == 0 && result == 0));
    memset(root, 9, bytes);
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::small());
    REQUIRE(are_all(pm_getroot(c.get()), bytes, 9));
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    REQUIRE(sigaction(SIGSEGV, &before, nullptr) == 0);
}
