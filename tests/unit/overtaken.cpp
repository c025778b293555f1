// With concurrent stores another thread stores a pointer while a commit is between its check of the pointers
// and the moment from which stores wait. The pointer is checked all the same.
// Linked with --wrap for lock_acquire_masked().
#include "common/fixture.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

namespace
{

int numbers[2]; // of this program, a module that no container knows yet

int calls_left; // until `work` is done by another thread, just before libpm takes the lock
std::function<void()> work;

struct Fixture {
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c;
    void **words = nullptr;

    void open(pm_foreign_pointers policy)
    {
        pm_options o = test::small(PM_CREATE | PM_MOVABLE);
        o.concurrent_stores = true;
        o.foreign_pointers = policy;
        c = test::open(path, o);
        words = static_cast<void **>(pm_calloc(c.get(), 16, sizeof *words));
        REQUIRE(words);
        REQUIRE_OK(pm_mark_pointers(words, 16));
        REQUIRE_OK(pm_setroot(c.get(), words, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }
    // A commit, before whose `at`-th lock another thread stores. False: it has fewer locks.
    bool commit_overtaken(int at, void *value, int *result)
    {
        words[0] = words;
        calls_left = at;
        work = [this, value] { words[1] = value; };
        *result = pm_commit(c.get());
        return !std::exchange(work, nullptr);
    }
    // Such a commit of a new container for each of its locks; `look` gets the commit's result.
    template <typename Look> void at_each_lock(void *value, Look look)
    {
        int result = 0, at = 1;
        for (;; at++) {
            c.reset();
            std::filesystem::remove(path);
            open(PM_FOREIGN_ERROR);
            if (!commit_overtaken(at, value, &result))
                break;
            INFO("at lock " << at);
            look(result);
        }
        REQUIRE(at > 2);
    }
};

} // namespace

extern "C" {

struct lock;
void __real_lock_acquire_masked(struct lock *lock, sigset_t *saved);

void __wrap_lock_acquire_masked(struct lock *lock, sigset_t *saved)
{
    if (work && --calls_left == 0)
        std::thread(std::exchange(work, nullptr)).join();
    __real_lock_acquire_masked(lock, saved);
}
}

TEST_CASE_METHOD(Fixture, "a pointer into a module, stored during a commit, finds the module noted")
{
    at_each_lock(numbers, [this](int result) {
        REQUIRE(result == 0);
        REQUIRE_OK(pm_check(c.get()));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
        REQUIRE(words[1] == numbers);
    });
}

TEST_CASE_METHOD(Fixture, "a pointer that leads out, stored during a commit, fails this commit or the next")
{
    auto *heap = new int;
    at_each_lock(heap, [this](int result) {
        if (result == 0)
            result = pm_commit(c.get());
        REQUIRE(result == -1);
        REQUIRE(test::failed_with(EINVAL, {"leads out of the container"}));
        words[1] = nullptr;
        REQUIRE_OK(pm_commit(c.get()));
    });
    delete heap;
}

TEST_CASE_METHOD(Fixture, "pointers that the program ignores do not hinder a commit")
{
    auto *heap = new int;
    open(PM_FOREIGN_IGNORE);
    int result = 0;
    for (int at = 1; commit_overtaken(at, heap, &result); at++)
        REQUIRE(result == 0);
    delete heap;
}
