// Several threads on one container: storing, allocating, and storing while another commits.
#include "common/process.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <mutex>
#include <random>
#include <sched.h>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using test::page_word;

namespace
{

const uint64_t PAGES = 256;

template <typename Body> void in_threads(int count, Body body)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
        threads.emplace_back([=] { body(i); });
    for (std::thread &t : threads)
        t.join();
}

// A word of an ordinary file that survives its process.
volatile uint64_t *map_counter(const std::string &path)
{
    int fd = open(path.c_str(), O_RDWR);
    void *p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        throw std::runtime_error("cannot map " + path);
    return static_cast<volatile uint64_t *>(p);
}

// A word that one thread stores to while another loads it. Relaxed: volatile keeps the order, and a
// releasing store that faults would fault within ThreadSanitizer, whose locks the handler then
// needs.
void store(volatile uint64_t &word, uint64_t value)
{
    __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}

uint64_t load(const volatile uint64_t &word)
{
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

// This thread, if there are so many processors.
void run_on_processor(int which)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed) && which-- == 0) {
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
}

} // namespace

TEST_CASE("stores of several threads, to the same pages and to different ones")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options how = test::small();
    how.concurrent_stores = test::concurrently();
    test::Container c = test::open_with_pages(path, PAGES, how);
    uint64_t *words = static_cast<uint64_t *>(pm_getroot(c.get()));
    for (uint64_t round = 1; round <= 30; round++) {
        std::atomic<int> ready{0};
        in_threads(4, [&, round](int thread) {
            ready++;
            while (ready < 4)
                std::this_thread::yield(); // on a busy machine the others would get no turn else
            for (uint64_t page = 0; page < PAGES; page++) // all faults at once on each page
                words[page * 512 + (uint64_t)thread] = round;
            for (uint64_t page = (uint64_t)thread; page < PAGES; page += 4)
                words[page * 512 + 100] = round;
        });
        REQUIRE(test::stats(c.get()).pages_open <= PAGES);
        if (round % 3 == 0)
            REQUIRE_OK(pm_rollback(c.get()));
        else
            REQUIRE_OK(pm_commit(c.get()));
        uint64_t expected = round % 3 == 0 ? round - 1 : round;
        for (uint64_t page = 0; page < PAGES; page++)
            for (uint64_t word : {0, 1, 2, 3, 100})
                if (words[page * 512 + word] != expected)
                    FAIL("page " << page << ", word " << word << ", round " << round);
        if (round % 10 == 0) { // cold again
            REQUIRE_OK(pm_check(c.get()));
            c.reset();
            how.flags = 0;
            c = test::open(path, how);
            for (uint64_t page = 0; page < PAGES; page++)
                REQUIRE(words[page * 512 + 2] == expected);
        }
    }
}

TEST_CASE("four threads allocate and free")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options how = test::small();
    how.concurrent_stores = test::concurrently();
    test::Container c = test::open(path, how);
    std::atomic<uint64_t> wrong{0};
    std::vector<std::vector<std::pair<unsigned char *, size_t>>> kept(4);
    for (int round = 0; round < 5; round++) {
        in_threads(4, [&](int thread) {
            std::mt19937 random((unsigned)(round * 4 + thread));
            auto &mine = kept[(size_t)thread];
            for (int i = 0; i < 3000; i++) {
                if (random() % 3 || mine.empty()) {
                    size_t size = random() % 50 ? 1 + random() % 500 : 1 + random() % 20000;
                    auto *p = static_cast<unsigned char *>(pm_malloc(c.get(), size));
                    if (!p) {
                        wrong++;
                        continue;
                    }
                    p[0] = p[size - 1] = (unsigned char)thread;
                    mine.push_back({p, size});
                } else {
                    size_t which = random() % mine.size();
                    auto [p, size] = mine[which];
                    wrong += p[0] != thread || p[size - 1] != thread;
                    wrong += pm_free(p) != 0;
                    mine[which] = mine.back();
                    mine.pop_back();
                }
            }
        });
        REQUIRE(wrong == 0);
        std::set<void *> all;
        for (auto &mine : kept)
            for (auto [p, size] : mine)
                REQUIRE(all.insert(p).second);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
    }
    c.reset();
    c = test::open(path, test::options());
    REQUIRE_OK(pm_check(c.get()));
    for (size_t thread = 0; thread < 4; thread++)
        for (auto [p, size] : kept[thread])
            REQUIRE((p[0] == thread && p[size - 1] == thread && pm_usable_size(p) >= size));
}

// Whatever may be called by several threads at once, is: for ThreadSanitizer to look at.
TEST_CASE("threads that store and allocate and look and commit at once", "[faults]")
{
    test::Directory directory;
    pm_options how = test::small();
    how.concurrent_stores = true;
    test::Container owner = test::open_with_pages(directory / "c", PAGES, how);
    pm_container *c = owner.get();
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> wrong{0};
    auto *root = static_cast<uint64_t *>(pm_getroot(c));
    auto stores = [&](uint64_t round) {
        for (uint64_t page = 0; page < PAGES; page += 3)
            root[page * 512 + 1] = round;
    };
    auto allocates = [&](uint64_t round) {
        std::vector<char *> mine;
        for (size_t i = 0; i < 60; i++) {
            size_t size = i % 20 ? 1 + i * 50 : 100000;
            auto *p = static_cast<char *>(pm_malloc(c, size));
            wrong += !p || pm_usable_size(p) < size;
            p[0] = p[size - 1] = (char)round;
            mine.push_back(p);
        }
        for (char *p : mine)
            wrong += pm_free(p) != 0;
    };
    auto looks = [&](uint64_t round) {
        struct pm_stats s{};
        s.size = sizeof s;
        wrong += pm_stats(c, &s) != 0 || s.commits > 1000000;
        wrong += pm_reserve(c, 100000) != 0;
        wrong += pm_dirty(root + (round % PAGES) * 512, 100) != 0;
        wrong += pm_check(c) != 0;
        wrong += pm_getroot(c) != root || pm_setroot(c, root, 0) != 0;
    };
    auto commits = [&](uint64_t) {
        pm_ticket ticket = pm_commit_async(c);
        wrong += pm_commit(c) != 0;
        wrong += pm_wait(ticket) != 0;
    };
    const std::function<void(uint64_t)> bodies[] = {stores, allocates, looks, commits, commits};
    in_threads((int)std::size(bodies), [&](int thread) {
        for (uint64_t round = 1; !stop; round++) {
            bodies[thread](round);
            if (thread == 1 && round == 60) // only ever set: `stop = stop || …` may unset it
                stop = true;
        }
    });
    REQUIRE(wrong == 0);
    REQUIRE_OK(pm_commit(c));
    REQUIRE_OK(pm_check(c));
    for (uint64_t page = 0; page < PAGES; page += 3)
        REQUIRE(root[page * 512 + 1] == root[1]);
}

// The containers are created while all are open: two that are created apart may choose the same addresses.
TEST_CASE("threads with a container each")
{
    test::Directory directory;
    const auto path = [&](int thread) { return directory / std::to_string(thread); };
    {
        std::vector<test::Container> all;
        for (int thread = 0; thread < 4; thread++) {
            all.push_back(test::open(path(thread), test::small()));
            auto *counter = static_cast<uint64_t *>(pm_calloc(all.back().get(), 1, 100000));
            REQUIRE_OK(pm_setroot(all.back().get(), counter, 0));
            REQUIRE_OK(pm_commit(all.back().get()));
        }
    }
    std::mutex lock;
    std::string failures;
    in_threads(4, [&](int thread) {
        const auto expect = [&](bool holds, const std::string &what) {
            std::lock_guard guard(lock);
            if (!holds)
                failures += what + ": " + pm_errormsg() + "\n";
            return holds;
        };
        pm_options how = test::small();
        for (uint64_t i = 1; i <= 50; i++) {
            pm_container *c = pm_open(path(thread).c_str(), &how);
            if (!expect(c, "open"))
                return;
            auto *p = static_cast<uint64_t *>(pm_getroot(c));
            expect(p[5000] == i - 1, "contents");
            p[5000] = i;
            expect(pm_commit(c) == 0, "commit");
            expect(pm_check(c) == 0, "check");
            expect(pm_close(c) == 0, "close");
        }
    });
    REQUIRE(failures == "");
}

TEST_CASE("each thread has its own message")
{
    REQUIRE_FALSE(pm_open("/no/such/directory", nullptr));
    std::string mine = pm_errormsg(), theirs;
    std::thread([&] {
        std::string before = pm_errormsg();
        pm_free(&theirs);
        theirs = before + pm_errormsg();
    }).join();
    REQUIRE(mine.find("/no/such/directory") != std::string::npos);
    REQUIRE(theirs.find("no open container") != std::string::npos);
    REQUIRE(pm_errormsg() == mine);
}

// A thread counts a, then b, then c, on different pages, without rest; another commits.
CHILD_PROCESS(counts_during_commits)
{
    pm_options how = test::options();
    how.concurrent_stores = true;
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    const uint64_t start = page_word(c, 15);                       // what was stored last
    auto *words = static_cast<volatile uint64_t *>(pm_getroot(c)); // which takes a lock
    std::thread counter([words, start] {
        run_on_processor(1);
        for (uint64_t n = start + 1;; n++) {
            words[10 * 512] = n;
            words[5 * 512] = n;
            words[(20 + n % 4) * 512] = n; // and some that come and go
            store(words[15 * 512], n);
        }
    });
    counter.detach();
    run_on_processor(0); // not the counter's, or else it would rest whenever we commit
    // What was stored before a commit that returned, where the parent finds it after the kill.
    volatile uint64_t *acknowledged = map_counter(arguments[2]);
    auto commit = [&] {
        // A long commit for the counter to slip into; which it can when all its pages are open.
        CHILD_REQUIRE(pm_dirty(static_cast<char *>(pm_getroot(c)) + 100 * 4096, 500 * 4096) == 0);
        for (uint64_t i = 100; i < 600; i++)
            words[i * 512] = words[i * 512] + 1;
        for (uint64_t before = load(words[15 * 512]); load(words[15 * 512]) < before + 1000;)
            usleep(10);
        uint64_t stored = load(words[15 * 512]);
        CHILD_REQUIRE(pm_commit(c) == 0);
        *acknowledged = stored;
    };
    uint64_t commits = std::stoul(arguments[1]);
    for (uint64_t i = 0; i < commits; i++) {
        commit();
        if (i % 10 == 0)
            CHILD_REQUIRE(pm_malloc(c, 100));
    }
    test::say("done");
    for (;;) // be killed at any moment
        commit();
}

TEST_CASE("each commit amid concurrent stores is a prefix of them", "[faults]")
{
    test::Directory directory;
    std::string path = directory / "c.pm", counter = directory / "counter";
    test::open_with_pages(path, 600, test::small());
    test::write_file(counter, std::string(4096, 0));
    volatile uint64_t *acknowledged = map_counter(counter);
    uint64_t last = 0;
    for (int kill = 0; kill < 15; kill++) {
        {
            test::Process child("counts_during_commits",
                                {path, std::to_string(kill * 2 + 1), counter});
            REQUIRE(child.read_line() == "done");
            usleep((unsigned)(kill * 1370 % 15000));
            child.kill(SIGKILL);
            REQUIRE_KILLED(SIGKILL, child.wait());
        }
        test::Container c = test::open(path, test::options());
        REQUIRE_OK(pm_check(c.get()));
        uint64_t n = page_word(c.get(), 15); // stored last
        INFO("kill " << kill << ": " << page_word(c.get(), 10) << ", " << page_word(c.get(), 5)
                     << ", " << page_word(c.get(), 20 + (n + 1) % 4) << ", " << n);
        REQUIRE(n >= last);
        REQUIRE(n >= *acknowledged);
        uint64_t a = page_word(c.get(), 10), b = page_word(c.get(), 5);
        REQUIRE((a == n || a == n + 1));
        REQUIRE((b == n || b == n + 1));
        REQUIRE(a >= b);
        uint64_t next = page_word(c.get(), 20 + (n + 1) % 4);
        REQUIRE((next == n + 1 || next + 3 == n || next == 0));
        if (next == n + 1)
            REQUIRE(b == n + 1);
        last = n;
    }
    REQUIRE(last > 100);
}

// The default: a lock of the program keeps stores out of commits. Invariant: both words are equal.
CHILD_PROCESS(stores_under_a_lock)
{
    pm_options how = test::options();
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    static std::mutex lock;
    std::thread([c] {
        for (uint64_t n = page_word(c, 10) + 1;; n++) {
            std::lock_guard<std::mutex> guard(lock);
            page_word(c, 10) = n;
            page_word(c, 5 + n % 3) = n;
            page_word(c, 40) = n;
        }
    }).detach();
    for (int i = 0;; i++) {
        {
            std::lock_guard<std::mutex> guard(lock);
            CHILD_REQUIRE(pm_commit(c) == 0);
        }
        if (i == 30)
            test::say("done");
        usleep(10);
    }
}

TEST_CASE("a storing thread that a lock keeps out of commits")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open_with_pages(path, 64, test::small());
    uint64_t last = 0;
    for (int kill = 0; kill < 8; kill++) {
        {
            test::Process child("stores_under_a_lock", {path});
            REQUIRE(child.read_line() == "done");
            usleep((unsigned)(kill * 311 % 1700));
            child.kill(SIGKILL);
            REQUIRE_KILLED(SIGKILL, child.wait());
        }
        test::Container c = test::open(path, test::options());
        uint64_t n = page_word(c.get(), 10);
        REQUIRE(page_word(c.get(), 40) == n);
        REQUIRE(page_word(c.get(), 5 + n % 3) == n);
        REQUIRE(n >= last);
        last = n;
    }
    REQUIRE(last > 0);
}

// What one transaction allocates, stores to and frees may be given out again in it; pages opened
// one by one are listed, once each.
CHILD_PROCESS(reuses_in_one_transaction)
{
    pm_options how = test::small();
    how.concurrent_stores = true;
    test::Container c = test::open_with_pages(arguments[0], 200, how);
    for (int i = 0; i < 5; i++) {
        char *p = static_cast<char *>(pm_malloc(c.get(), 300000));
        CHILD_REQUIRE(p);
        memset(p, i, 300000);
        CHILD_REQUIRE(pm_free(p) == 0);
    }
    if (arguments[1] == "object") {
        char *p = static_cast<char *>(pm_malloc(c.get(), 300000));
        CHILD_REQUIRE(p);
        memset(p, 77, 300000);
        CHILD_REQUIRE(pm_setroot(c.get(), p, 0) == 0);
    } else {
        for (uint64_t i = 0; i < 200; i++) // images fill the segments just freed
            page_word(c.get(), 199 - i) = i;
    }
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    if (arguments[1] == "log")
        for (uint64_t i = 0; i < 200; i++)
            page_word(c.get(), i) = 1000;
    _exit(0);
}

TEST_CASE("with concurrent stores memory freed in a transaction is used again in it", "[faults]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    for (std::string user : {"object", "log"}) {
        REQUIRE_CLEAN(test::run("reuses_in_one_transaction", {path, user}));
        test::Container c = test::open(path, test::options());
        REQUIRE_OK(pm_check(c.get()));
        if (user == "object") {
            char *p = static_cast<char *>(pm_getroot(c.get()));
            REQUIRE(std::count(p, p + 300000, 77) == 300000);
        } else {
            for (uint64_t i = 0; i < 200; i++)
                REQUIRE(page_word(c.get(), 199 - i) == i);
        }
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
    }
}

// Both orders of the two calls leave the root that was set.
TEST_CASE("a root that is set while another thread resizes the old one stays")
{
    test::Directory directory;
    const test::Container c = test::open(directory / "c.pm", test::options(PM_CREATE));
    void *first = pm_malloc(c.get(), 64), *second = pm_malloc(c.get(), 64);
    REQUIRE((first && second));
    constexpr int ROUNDS = 100'000;
    std::atomic<int> turn{0};
    const auto await = [&](int n) {
        // On a busy machine a turn would take a time slice if nobody yielded.
        for (int spins = 0; turn != n; spins++)
            if (spins % 128 == 127)
                std::this_thread::yield();
    };
    std::jthread resizes([&] {
        for (int i = 1; i <= ROUNDS; i++) {
            await(2 * i - 1);
            first = pm_realloc(first, i % 2 ? 200 : 64);
            turn = 2 * i;
        }
    });
    int wrong = 0;
    for (int i = 1; i <= ROUNDS; i++) {
        wrong += pm_setroot(c.get(), first, 0) != 0;
        turn = 2 * i - 1;
        for (int wait = 0; wait < i % 900; wait++)
            asm volatile("");
        wrong += pm_setroot(c.get(), second, 0) != 0;
        await(2 * i);
        wrong += pm_getroot(c.get()) != second;
    }
    CHECK(wrong == 0);
}
