// A call that makes an object, and stores to it, does so in one transaction, also where another thread rolls
// back meanwhile. Otherwise libpm would store to whatever object has the memory next.
#include "common/fixture.hpp"
#include "unit/beside.hpp"

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

struct allocator;

namespace
{

std::function<void()> after_allocating; // once
std::atomic<bool> done;

} // namespace

extern "C" {
void *__real_allocator_allocate_locked(struct allocator *a, size_t size, size_t alignment);
void *__wrap_allocator_allocate_locked(struct allocator *a, size_t size, size_t alignment);
void *__wrap_allocator_allocate_locked(struct allocator *a, size_t size, size_t alignment)
{
    void *p = __real_allocator_allocate_locked(a, size, alignment);
    if (auto then = std::exchange(after_allocating, nullptr))
        then();
    return p;
}
}

namespace
{

constexpr size_t BYTES = 2000;

struct Fixture {
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c;
    void *small = nullptr;  // committed, with `7` in each byte
    void *theirs = nullptr; // the other thread's object

    Fixture()
    {
        pm_options o = test::small();
        o.concurrent_stores = !test::stores();
        c = test::open(path, o);
        small = pm_calloc(c.get(), 1, BYTES / 4);
        REQUIRE(small);
        memset(small, 7, BYTES / 4);
        REQUIRE_OK(pm_setroot(c.get(), small, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }

    // When `call` has allocated, another thread rolls back and commits an object of its own: until it has
    // done so, or waits for the call.
    template <class Call> void beside_rollback(Call call)
    {
        std::thread thread;
        int result = -1;
        other_waits = done = false;
        after_allocating = [&] {
            thread = std::thread([&] {
                is_other = true;
                result = pm_rollback(c.get());
                theirs = pm_malloc(c.get(), BYTES);
                if (result == 0 && theirs) {
                    memset(theirs, 'x', BYTES);
                    result = pm_commit(c.get());
                }
                done = true;
            });
            while (!other_waits && !done)
                std::this_thread::yield();
        };
        call();
        thread.join();
        REQUIRE(result == 0);
        REQUIRE(theirs);
    }

    void theirs_is_whole()
    {
        CHECK(are_all(theirs, BYTES, 'x'));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
        CHECK(are_all(theirs, BYTES, 'x'));
    }
};

struct node {
    node *next;
    char rest[BYTES - 8];
};

} // namespace

TEST_CASE_METHOD(Fixture, "pm_calloc() beside a rollback zeroes no object of another thread")
{
    beside_rollback([&] { CHECK(pm_calloc(c.get(), 1, BYTES)); });
    theirs_is_whole();
}

TEST_CASE_METHOD(
    Fixture,
    "pm_malloc_typed() beside a rollback declares no pointer in an object of another thread")
{
    static const struct pm_field field = {offsetof(node, next), 1};
    static const struct pm_type type = {sizeof(node), 1, &field};
    beside_rollback([&] { CHECK(pm_malloc_typed(c.get(), &type, 1)); });
    CHECK(pm_next_pointer(theirs, static_cast<char *>(theirs) + BYTES) == nullptr);
    theirs_is_whole();
}

TEST_CASE_METHOD(Fixture, "pm_realloc() beside a rollback copies into no object of another thread")
{
    beside_rollback([&] { CHECK(pm_realloc(small, BYTES)); });
    theirs_is_whole();
    CHECK(pm_getroot(c.get()) == small);
    CHECK(pm_usable_size(small) >= BYTES / 4);
    CHECK(static_cast<unsigned char *>(small)[BYTES / 4 - 1] == 7);
}
