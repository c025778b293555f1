// What libpm itself stores into a new object belongs to the transaction that it was announced in, also
// where another thread commits meanwhile.
#include "common/fixture.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

struct txn;
struct lock;

namespace
{

std::function<void()> after_announcing; // once
thread_local bool commits;
std::atomic<bool> waits, committed;

} // namespace

extern "C" {
int __real_txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes);
void __real_lock_wait(struct lock *lock);

int __wrap_txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes);
int __wrap_txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    int error = __real_txn_dirty(t, offset, bytes);
    if (auto then = std::exchange(after_announcing, nullptr))
        then();
    return error;
}

void __wrap_lock_wait(struct lock *lock);
void __wrap_lock_wait(struct lock *lock)
{
    if (commits)
        waits = true;
    __real_lock_wait(lock);
}
}

namespace
{

constexpr size_t bytes = 1000;

bool are_all(const void *p, int value)
{
    const auto *b = static_cast<const unsigned char *>(p);
    return std::all_of(b, b + bytes, [&](unsigned char c) { return c == value; });
}

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
    waits = committed = false;
    after_announcing = [&] {
        thread = std::thread([&] {
            commits = true;
            result = pm_commit(c);
            committed = true;
        });
        while (!waits && !committed)
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
    REQUIRE(are_all(pm_getroot(c.get()), 0));
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
    REQUIRE(are_all(pm_getroot(c.get()), 7));
}
