// The volatile heap: sizes, places, what an address leads to.
#include "common/compiled.hpp"
#include "common/fixture.hpp"
#include "common/process.hpp"

extern "C" {
#include "discovery/heap.h"
}

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <map>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

heap_object at(const void *address, heap_state expected = HEAP_LIVE)
{
    heap_object object{};
    REQUIRE(heap_find(address, &object) == expected);
    return object;
}

char *allocate(size_t size)
{
    auto *p = static_cast<char *>(pm__malloc(size));
    REQUIRE(p);
    REQUIRE(heap_contains(p));
    return p;
}

bool has_memory = true; // for the library's tables

} // namespace

extern "C" void *__real_calloc(size_t count, size_t size);

extern "C" void *__wrap_calloc(size_t count, size_t size)
{
    return has_memory ? __real_calloc(count, size) : (errno = ENOMEM, nullptr);
}

TEST_CASE("a thread without memory for a cache can free")
{
    char *p = allocate(100), *large = allocate(100000);
    REQUIRE(mlock(large, 4096) == 0);
    has_memory = false;
    bool same = false;
    std::thread([&] {
        errno = EDOM;
        pm__free(p);
        pm__free(large); // which the kernel will not take back
        same = errno == EDOM;
    }).join();
    has_memory = true;
    REQUIRE(same);
    at(p, HEAP_FREE);
    munlock(large, 4096);
    char *again = allocate(100);
    REQUIRE(std::all_of(again, again + 100, [](char c) { return c == 0; }));
    pm__free(again);
}

TEST_CASE("an object is found from its first byte to one past its last, and nowhere else")
{
    for (size_t size : {0, 1, 7, 8, 9, 15, 16, 24, 40, 1015, 1016, 1017, 32759, 32760, 32761, 65528,
                        65529, 200000, 1 << 20}) {
        char *p = allocate(size), *q = allocate(size);
        INFO(size);
        REQUIRE(reinterpret_cast<uintptr_t>(p) % 16 == 0);
        memset(p, 'p', size);
        memset(q, 'q', size);
        for (size_t offset : {size_t{0}, size / 2, size}) {
            const heap_object object = at(p + offset);
            REQUIRE(object.start == p);
            REQUIRE(object.size >= size);
            REQUIRE_FALSE(object.moves);
        }
        if (size <= 1016) /* larger ones may be said to be a little longer */
            REQUIRE(at(p).size == size);
        REQUIRE(at(q + size).start == q);
        REQUIRE(std::all_of(p, p + size, [](char c) { return c == 'p'; }));
        pm__free(p);
        at(p, HEAP_FREE);
        REQUIRE(at(q).start == q);
        pm__free(q);
    }
    heap_object object;
    for (uintptr_t number = 0; number < 1 << 30; number += HEAP_SPAN) /* behind half an address */
        REQUIRE(heap_find(reinterpret_cast<void *>(VOLATILE_BASE + number), &object) == HEAP_NONE);
    REQUIRE(heap_find(reinterpret_cast<void *>(VOLATILE_BASE + VOLATILE_SIZE - 1), &object) ==
            HEAP_NONE);
}

TEST_CASE("aligned objects, and what cannot be had")
{
    for (size_t alignment = 8; alignment <= 1 << 21; alignment *= 2)
        for (size_t size : {size_t{1}, size_t{24}, alignment - 8, alignment, alignment + 1}) {
            void *p = pm__memalign(alignment, size);
            INFO(alignment << " " << size);
            REQUIRE(p);
            REQUIRE(reinterpret_cast<uintptr_t>(p) % alignment == 0);
            REQUIRE(at(static_cast<char *>(p) + size).start == p);
            pm__free(p);
        }
    for (size_t alignment : {0, 24, 48}) { // as in glibc, the next power of two
        void *p = pm__memalign(alignment, 1);
        REQUIRE(p);
        REQUIRE(reinterpret_cast<uintptr_t>(p) % std::bit_ceil(alignment) == 0);
        pm__free(p);
    }
    errno = 0;
    REQUIRE_FALSE(pm__memalign(SIZE_MAX / 2 + 2, 1));
    REQUIRE(errno == EINVAL);
    for (size_t size : {SIZE_MAX, SIZE_MAX - 7, size_t{VOLATILE_SIZE}}) {
        errno = 0;
        REQUIRE_FALSE(pm__malloc(size));
        REQUIRE(errno == ENOMEM);
    }
    REQUIRE_FALSE(pm__calloc(SIZE_MAX / 2, 3));
    void *p = allocate(100);
    REQUIRE_FALSE(pm__reallocarray(p, SIZE_MAX / 2, 3));
    REQUIRE_FALSE(pm__realloc(p, SIZE_MAX));
    pm__free(p); // it is still there
    REQUIRE(pm__posix_memalign(&p, 4, 1) == EINVAL);
    REQUIRE(pm__posix_memalign(&p, 64, 1) == 0);
    pm__free(p);
}

TEST_CASE("objects are apart, begin as zeros, and memory is used again")
{
    std::mt19937 random(1);
    std::map<char *, std::pair<size_t, char>> live;
    char *lowest = reinterpret_cast<char *>(UINTPTR_MAX), *highest = nullptr;
    for (int i = 0; i < 60000; i++) {
        if (live.size() < 1000 && random() % 2) {
            const size_t size = random() % 50 ? random() % 600 : random() % 300000;
            char *p = allocate(size);
            REQUIRE(std::all_of(p, p + size, [](char c) { return c == 0; }));
            const char fill = static_cast<char>(i);
            memset(p, fill, size);
            live[p] = {size, fill};
            lowest = std::min(lowest, p);
            highest = std::max(highest, p);
        } else if (!live.empty()) {
            auto it = std::next(live.begin(), static_cast<long>(random() % live.size()));
            auto [size, fill] = it->second;
            REQUIRE(std::all_of(it->first, it->first + size,
                                [fill = fill](char c) { return c == fill; }));
            pm__free(it->first);
            live.erase(it);
        }
    }
    std::vector<char *> walked;
    for (heap_object object{}; heap_next(&object);)
        walked.push_back(object.start);
    std::vector<char *> expected;
    for (const auto &[p, of] : live)
        expected.push_back(p);
    REQUIRE(walked == expected);
    REQUIRE(highest - lowest < 256 << 20);
    for (const auto &[p, of] : live)
        pm__free(p);
    heap_object object{};
    REQUIRE_FALSE(heap_next(&object));
}

TEST_CASE("a large object begins as zeros where small ones were")
{
    constexpr size_t SMALL = 1000, LARGE = 300000;
    std::thread([] { // when the thread ends, it keeps no memory
        std::vector<void *> all(2000);
        for (void *&p : all)
            p = memset(pm__malloc(SMALL), 's', SMALL);
        for (void *p : all)
            pm__free(p);
    }).join();
    std::vector<char *> large(5);
    for (char *&p : large) {
        p = allocate(LARGE);
        REQUIRE(std::all_of(p, p + LARGE, [](char c) { return c == 0; }));
    }
    for (char *p : large)
        pm__free(p);
}

TEST_CASE("holes that fit exactly are used again")
{
    std::vector<char *> all, holes;
    for (int i = 0; i < 32; i++)
        all.push_back(allocate(1 << 20));
    for (int i = 1; i < 32; i += 2) { /* between two that stay */
        holes.push_back(all[i]);
        pm__free(all[i]);
    }
    for (int i = 1; i < 31; i += 2) {
        all[i] = allocate(1 << 20);
        REQUIRE(std::count(holes.begin(), holes.end(), all[i]) == 1);
    }
    for (int i = 0; i < 31; i++)
        pm__free(all[i]);
}

TEST_CASE("contents and kinds go along with a larger object, and kinds end with it")
{
    struct Pair {
        Pair *pointer;
        uint64_t number;
    };
    auto *p = compiled::make<Pair>();
    compiled::put(p->pointer, p);
    compiled::put(p->number, 17);
    REQUIRE(kinds_of(&p->pointer)[0] == KIND_POINTER);
    REQUIRE(kinds_of(&p->number)[0] == KIND_DATA);
    auto *q = static_cast<Pair *>(pm__realloc(p, 5000));
    REQUIRE(q->pointer == p);
    REQUIRE(q->number == 17);
    REQUIRE((kinds_of(&q->pointer)[0] & KIND_MAY_POINT) != 0);
    REQUIRE(kinds_of(p)[0] == KIND_NONE);
    const uint8_t *kinds = kinds_of(q);
    pm__free(q);
    REQUIRE(std::all_of(kinds, kinds + 5000 / 8, [](uint8_t k) { return k == KIND_NONE; }));
    auto *large = static_cast<Pair **>(pm__malloc(1 << 20));
    compiled::put(large[100000], p);
    pm__free(large);
    REQUIRE(kinds_of(&large[100000])[0] == KIND_NONE);
    large = static_cast<Pair **>(pm__malloc(1 << 20)); // and where the kernel keeps memory
    compiled::put(large[100000], p);
    const bool is_locked = mlock(kinds_of(&large[100000]), 1) == 0;
    if (!is_locked)
        WARN("this user may lock no memory, so it is not tested"); // nor has ASan an mlock()
    pm__free(large);
    REQUIRE(kinds_of(&large[100000])[0] == KIND_NONE);
    if (is_locked)
        REQUIRE(munlock(kinds_of(&large[100000]), 1) == 0);
}

TEST_CASE("sizes of arrays, and of what is there, as libc has them")
{
    auto *p = static_cast<char *>(pm__reallocarray(nullptr, 10, 100));
    REQUIRE(heap_contains(p));
    memset(p, 'p', 1000);
    REQUIRE(pm__malloc_usable_size(p) >= 1000);
    REQUIRE_FALSE(pm__reallocarray(p, SIZE_MAX / 2, 3));
    REQUIRE(errno == ENOMEM);
    p = static_cast<char *>(pm__reallocarray(p, 100, 100));
    REQUIRE(std::all_of(p, p + 1000, [](char c) { return c == 'p'; }));
    REQUIRE_FALSE(pm__realloc(p, 0));
    heap_object object{};
    REQUIRE(heap_find(p, &object) == HEAP_FREE);
    void *libc = malloc(10);
    REQUIRE(pm__malloc_usable_size(libc) >= 10);
    free(libc);
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    void *durable = pm_malloc(c.get(), 50);
    REQUIRE(pm__malloc_usable_size(durable) == pm_usable_size(durable));
    const int status = test::in_child([&] { pm__free(durable); }); // which has no container
    REQUIRE(test::killed(status, SIGABRT));
}

CHILD_PROCESS(frees_twice)
{
    void *p = pm__malloc(100);
    pm__free(p);
    if (arguments[0] == "free")
        pm__free(p);
    CHILD_REQUIRE(!pm__realloc(p, 200));
}

TEST_CASE("a call that cannot fail names itself, the address, and the remedy, as its last words")
{
    const std::string call = GENERATE("free", "realloc");
    const test::Ended ended = test::run("frees_twice", {call});
    INFO(ended.errors);
    REQUIRE(test::killed(ended.status, SIGABRT));
    REQUIRE_THAT(ended.errors, Catch::StartsWith("libpm: " + call + "(): 0x") &&
                                   Catch::Contains("freed") && Catch::Contains("free it once") &&
                                   !Catch::Contains("Invalid argument"));
}

TEST_CASE("what is no object cannot be freed")
{
    char *p = allocate(100), *large = allocate(1 << 20);
    for (char *wrong : {p + 16, p + 1, large + 65536}) {
        int status = test::in_child([&] { pm__free(wrong); });
        REQUIRE(test::killed(status, SIGABRT));
    }
    int status = test::in_child([&] { (void)pm__realloc(p + 16, 200); });
    REQUIRE(test::killed(status, SIGABRT));
    pm__free(p);
    REQUIRE(test::killed(test::in_child([&] { pm__free(p); }), SIGABRT));
    pm__free(large);
    REQUIRE(test::killed(test::in_child([&] { pm__free(large); }), SIGABRT));
    pm__free(nullptr);
    void *libc = malloc(10); // foreign code's
    libc = pm__realloc(libc, 1000);
    REQUIRE_FALSE(heap_contains(libc));
    pm__free(libc);
}

TEST_CASE("threads, and objects that others free")
{
    std::vector<std::vector<char *>> made(4);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < made.size(); t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20000; i++) {
                auto *p = static_cast<char *>(pm__malloc(16 + static_cast<size_t>(i) % 300));
                memset(p, static_cast<int>(t), 16);
                made[t].push_back(p);
                if (i % 3 == 0) {
                    pm__free(made[t].front());
                    made[t].front() = made[t].back();
                    made[t].pop_back();
                }
            }
        });
    for (std::thread &t : threads)
        t.join();
    std::vector<char *> all;
    for (size_t t = 0; t < made.size(); t++)
        for (char *p : made[t]) {
            REQUIRE(p[0] == static_cast<char>(t));
            REQUIRE(p[15] == static_cast<char>(t));
            all.push_back(p);
        }
    std::sort(all.begin(), all.end());
    REQUIRE(std::adjacent_find(all.begin(), all.end()) == all.end());
    for (char *p : all)
        pm__free(p);
    heap_object object{};
    REQUIRE_FALSE(heap_next(&object));
}

TEST_CASE("threads with large objects, which no two of them have")
{
    std::atomic<int> overwritten = 0;
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; t++)
        threads.emplace_back([&, t] {
            for (size_t i = 0; i < 4000; i++) {
                const size_t bytes = (40 + i * 7 % 160) << 10;
                auto *p = static_cast<char *>(pm__malloc(bytes));
                for (size_t at = 0; at < bytes; at += 4096)
                    p[at] = static_cast<char>(t);
                for (size_t at = 0; at < bytes; at += 4096)
                    overwritten += p[at] != t;
                pm__free(p);
            }
        });
    for (std::thread &t : threads)
        t.join();
    REQUIRE(overwritten == 0);
    heap_object object{};
    REQUIRE_FALSE(heap_next(&object));
}

TEST_CASE("a child of fork has the heap, too")
{
    char *p = allocate(1000);
    memset(p, 'p', 1000);
    int status = test::in_child([&] {
        CHILD_REQUIRE(p[999] == 'p');
        pm__free(p);
        auto *q = static_cast<uint64_t *>(pm__malloc(100000));
        compiled::put(q[1], 5);
        CHILD_REQUIRE(q[1] == 5);
    });
    REQUIRE(test::exited(status));
    REQUIRE(p[0] == 'p');
    pm__free(p);
}

TEST_CASE("a child of fork frees, and unloads modules, whatever other threads did at the fork")
{
    constexpr int fields = 2000, forks = 200; // many, so that the list is in use most of the time
    auto **field = compiled::make<void *>(fields * sizeof(void *));
    for (int i = 0; i < fields; i++)
        REQUIRE_OK(pm_exclude(&field[i]));
    std::atomic<bool> stop{false};
    std::thread excludes([&] {
        for (void **last = &field[fields - 1]; !stop;) {
            pm_include(last);
            pm_exclude(last);
        }
    });
    std::thread loads([&] {
        while (!stop)
            compiled::Module();
    });
    bool all_end = true;
    for (int i = 0; i < forks && all_end; i++)
        all_end = test::exited(test::in_child([&] {
            alarm(20);
            compiled::Module();
            pm__free(field);
        }));
    stop = true;
    excludes.join();
    loads.join();
    REQUIRE(all_end);
    pm__free(field);
}
