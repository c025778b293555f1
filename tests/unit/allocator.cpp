// Allocation: sizes, alignments, bad pointers, and what belongs to a transaction.
#include "common/fixture.hpp"
#include "container/format.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <set>

using test::failed_with;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());

    void reopen()
    {
        c.reset();
        c = test::open(path, test::options());
    }
    char *allocate(size_t size)
    {
        char *p = static_cast<char *>(pm_malloc(c.get(), size));
        INFO(size << " bytes: " << pm_errormsg());
        REQUIRE(p);
        return p;
    }
    void commit() { REQUIRE_OK(pm_commit(c.get())); }
    void check() { REQUIRE_OK(pm_check(c.get())); }
};

} // namespace

TEST_CASE_METHOD(Fixture, "an allocation of 0 is one of 1")
{
    void *a = pm_malloc(c.get(), 0), *b = pm_malloc(c.get(), 0);
    REQUIRE((a && b && a != b));
    REQUIRE(pm_usable_size(a) == 16);
    REQUIRE(pm_calloc(c.get(), 0, 100));
    REQUIRE(pm_calloc(c.get(), 100, 0));
    REQUIRE(pm_aligned_alloc(c.get(), 64, 0));
    a = pm_realloc(a, 0);
    REQUIRE(a);
    REQUIRE_OK(pm_free(a));
    check();
}

TEST_CASE_METHOD(Fixture, "what does not fit is refused, and nothing has changed")
{
    char *kept = allocate(100);
    memset(kept, 7, 100);
    const uint64_t max = 64 << 20;
    for (size_t size :
         {max - 65536, max, max + 1, size_t{1} << 40, SIZE_MAX - 4096, SIZE_MAX - 1, SIZE_MAX}) {
        REQUIRE_FALSE(pm_malloc(c.get(), size));
        REQUIRE(failed_with(ENOSPC, {path.c_str()}));
        REQUIRE_FALSE(pm_realloc(kept, size));
        REQUIRE(failed_with(ENOSPC, {path.c_str()}));
        REQUIRE_FALSE(pm_aligned_alloc(c.get(), 4096, size));
        REQUIRE(failed_with(ENOSPC));
        REQUIRE_FALSE(pm_calloc(c.get(), 1, size));
        REQUIRE(failed_with(ENOSPC));
    }
    REQUIRE_FALSE(pm_calloc(c.get(), SIZE_MAX / 2, 3));
    REQUIRE(failed_with(ENOSPC));
    REQUIRE_FALSE(pm_calloc(c.get(), size_t{1} << 32, size_t{1} << 32)); // 0 modulo 2^64
    REQUIRE(failed_with(ENOSPC));
    REQUIRE(std::count(kept, kept + 100, 7) == 100);
    REQUIRE(pm_usable_size(kept) == 112);
    commit();
    check();
}

TEST_CASE_METHOD(Fixture, "every size is aligned to 16 and can be used to its end")
{
    std::map<char *, size_t> objects;
    for (size_t size = 1; size < 70000; size += 1 + size / 7) {
        char *p = allocate(size);
        size_t usable = pm_usable_size(p);
        REQUIRE((uintptr_t)p % 16 == 0);
        REQUIRE(usable >= size);
        if (size <= 8192)
            REQUIRE(usable <= std::max(size + 15, size + size / 8 + 15));
        REQUIRE(pm_contains(c.get(), p));
        memset(p, (int)(size % 251), usable);
        objects[p] = size;
    }
    auto whole = [&] {
        for (auto [p, size] : objects)
            if (std::count(p, p + pm_usable_size(p), (char)(size % 251)) != (long)pm_usable_size(p))
                return false;
        return true;
    };
    for (auto [p, size] : objects) // none reaches into the next
        if (auto next = objects.upper_bound(p); next != objects.end())
            REQUIRE(p + pm_usable_size(p) <= next->first);
    REQUIRE(whole());
    commit();
    check();
    reopen();
    REQUIRE(whole());
}

TEST_CASE_METHOD(Fixture, "sizes at the edges of classes")
{
    // Find the edges from outside: where the usable size jumps.
    std::vector<size_t> edges;
    size_t size = 1;
    while (size <= 32768) {
        void *p = allocate(size);
        edges.push_back(pm_usable_size(p));
        size = pm_usable_size(p) + 1;
        REQUIRE_OK(pm_free(p));
    }
    commit();
    REQUIRE(edges.size() > 40);
    for (size_t edge : edges) {
        REQUIRE(edge % 16 == 0);
        std::vector<char *> objects;
        for (size_t s : {edge - 1, edge, edge + 1})
            for (int i = 0; i < 3; i++) {
                objects.push_back(allocate(s));
                memset(objects.back(), i, s);
            }
        REQUIRE(pm_usable_size(objects[0]) == edge);
        REQUIRE(pm_usable_size(objects[3]) == edge);
        REQUIRE(pm_usable_size(objects[6]) > edge);
        commit();
        for (size_t i = 0; i < objects.size(); i++) {
            REQUIRE(objects[i][0] == (char)(i % 3));
            REQUIRE(objects[i][edge - 2] == (char)(i % 3));
            REQUIRE_OK(pm_free(objects[i]));
        }
        commit();
    }
    check();
}

TEST_CASE("the granularity is honoured")
{
    test::Directory directory;
    for (uint32_t granularity : {16u, 64u, 256u, 4096u}) {
        pm_options options = test::small();
        options.granularity = granularity;
        test::Container c = test::open(directory / std::to_string(granularity), options);
        for (size_t size :
             {1u, 16u, 17u, granularity - 1, granularity, granularity + 1, 5000u, 20000u}) {
            char *p = static_cast<char *>(pm_malloc(c.get(), size));
            REQUIRE(p);
            REQUIRE(pm_usable_size(p) % granularity == 0);
            REQUIRE(pm_usable_size(p) >= size);
            REQUIRE((uintptr_t)p % granularity == 0);
            memset(p, 1, pm_usable_size(p));
        }
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
    }
}

TEST_CASE_METHOD(Fixture, "alignments")
{
    for (size_t alignment = 1; alignment <= 64 << 10; alignment *= 2)
        for (size_t size : {1, 15, 16, 17, 100, 1000, 4096, 5000, 70000}) {
            INFO("alignment " << alignment << ", size " << size);
            char *p = static_cast<char *>(pm_aligned_alloc(c.get(), alignment, size));
            REQUIRE(p);
            REQUIRE((uintptr_t)p % alignment == 0);
            REQUIRE((uintptr_t)p % 16 == 0);
            REQUIRE(pm_usable_size(p) >= size);
            p[0] = p[size - 1] = 1;
        }
    for (size_t alignment : {size_t{0}, size_t{3}, size_t{48}, size_t{128 << 10}, SIZE_MAX}) {
        REQUIRE_FALSE(pm_aligned_alloc(c.get(), alignment, 10));
        REQUIRE(failed_with(EINVAL, {path.c_str()}));
    }
    commit();
    check();
}

TEST_CASE_METHOD(Fixture, "bad pointers are refused and nothing happens")
{
    char *small = allocate(100), *large = allocate(200000), *freed = allocate(100);
    char *freed_large = allocate(100000);
    REQUIRE_OK(pm_free(freed));
    REQUIRE_OK(pm_free(freed_large));
    char *base = reinterpret_cast<char *>((uintptr_t)small & ~((uintptr_t{1} << 30) - 1));
    int local;
    std::unique_ptr<char[]> heap(new char[100]);
    struct Bad {
        const char *what;
        void *p;
    };
    const Bad bad[] = {
        {"the stack", &local},
        {"the heap", heap.get()},
        {"code", reinterpret_cast<void *>(&failed_with)},
        {"interior", small + 16},
        {"interior, odd", small + 1},
        {"interior of a large object", large + 16},
        {"second segment of a large object", large + 65536},
        {"freed", freed},
        {"freed, large", freed_large},
        {"a slot never given out", small + 112 * 50},
        {"metadata", base},
        {"the segment table", base + 3 * 4096},
        {"the log", base + 65536},
        {"a slab's bitmap", (char *)((uintptr_t)small & ~(uintptr_t)65535)},
        {"beyond the file's end", base + (60 << 20)},
        {"beyond the container", base + (64 << 20)},
        {"just below the container", base - 16},
        {"the last byte of memory", (void *)UINTPTR_MAX},
    };
    memset(small, 3, 100);
    for (const Bad &b : bad) {
        INFO(b.what);
        REQUIRE(pm_free(b.p) == -1);
        REQUIRE(failed_with(EINVAL));
        REQUIRE_FALSE(pm_realloc(b.p, 10));
        REQUIRE(failed_with(EINVAL));
        REQUIRE(pm_usable_size(b.p) == 0);
        REQUIRE(failed_with(EINVAL));
        REQUIRE(pm_setroot(c.get(), b.p, 0) == -1);
        REQUIRE(failed_with(EINVAL));
    }
    REQUIRE(pm_free(nullptr) == 0);
    REQUIRE_FALSE(pm_realloc(nullptr, 10));
    REQUIRE(failed_with(EINVAL));
    REQUIRE(pm_usable_size(nullptr) == 0);
    REQUIRE(pm_usable_size(small) == 112);
    REQUIRE(std::count(small, small + 100, 3) == 100);
    commit();
    for (char *p : {freed, freed_large}) { // and for ever
        REQUIRE(pm_free(p) == -1);
        REQUIRE(failed_with(EINVAL));
    }
    REQUIRE_OK(pm_free(small));
    REQUIRE(pm_free(small) == -1);
    REQUIRE(failed_with(EINVAL));
    commit();
    REQUIRE(pm_free(small) == -1);
    REQUIRE(failed_with(EINVAL));
    check();
}

TEST_CASE_METHOD(Fixture, "a call that fails leaves a slab whose last object is free")
{
    void **p = reinterpret_cast<void **>(allocate(5000));
    allocate(16);
    commit();
    REQUIRE_OK(pm_free(p));
    const struct pm_stats before = test::stats(c.get());
    REQUIRE(pm_mark_pointer(p) == -1);
    REQUIRE(failed_with(EINVAL, {"is in no object"}));
    const struct pm_stats after = test::stats(c.get());
    REQUIRE(after.segments_data == before.segments_data);
    REQUIRE(after.segments_free == before.segments_free);
    commit();
    check();
}

TEST_CASE_METHOD(Fixture, "every function refuses a NULL container")
{
    struct pm_stats stats{};
    stats.size = sizeof stats;
    REQUIRE_FALSE(pm_malloc(nullptr, 1));
    REQUIRE(failed_with(EINVAL));
    REQUIRE_FALSE(pm_calloc(nullptr, 1, 1));
    REQUIRE_FALSE(pm_aligned_alloc(nullptr, 16, 1));
    REQUIRE(pm_reserve(nullptr, 1) == -1);
    REQUIRE(pm_commit(nullptr) == -1);
    REQUIRE(pm_rollback(nullptr) == -1);
    REQUIRE(pm_clear(nullptr) == -1);
    REQUIRE(pm_setroot(nullptr, nullptr, 0) == -1);
    REQUIRE_FALSE(pm_getroot(nullptr));
    REQUIRE(pm_stats(nullptr, &stats) == -1);
    REQUIRE(pm_check(nullptr) == -1);
    REQUIRE(failed_with(EINVAL));
}

TEST_CASE_METHOD(Fixture, "the root stays the root when realloc moves it")
{
    char *p = static_cast<char *>(pm_malloc(c.get(), 100));
    REQUIRE(p);
    strcpy(p, "the root");
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    char *moved = static_cast<char *>(pm_realloc(p, 5000));
    REQUIRE((moved && moved != p));
    REQUIRE(pm_getroot(c.get()) == moved);
    REQUIRE(std::string(moved) == "the root");
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "a root that realloc makes smaller has the new size")
{
    void *p = pm_malloc(c.get(), 5000);
    REQUIRE(p);
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    void *moved = pm_realloc(p, 100);
    REQUIRE((moved && moved != p));
    REQUIRE(pm_getroot(c.get()) == moved);
    REQUIRE_OK(pm_check(c.get())); // the root is not larger than its object
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "realloc to nothing keeps one byte")
{
    auto *p = static_cast<char *>(pm_malloc(c.get(), 64));
    *p = 'x';
    p = static_cast<char *>(pm_realloc(p, 0));
    REQUIRE(p);
    REQUIRE(*p == 'x');
}

TEST_CASE_METHOD(Fixture, "realloc keeps the contents")
{
    std::string text = "a story that goes on and on";
    for (bool committed : {false, true}) {
        char *p = allocate(text.size() + 1);
        strcpy(p, text.c_str());
        if (committed)
            commit();
        for (size_t size : {100, 4000, 5000, 60000, 300000, 64, 28}) {
            p = static_cast<char *>(pm_realloc(p, size));
            REQUIRE(p);
            REQUIRE(p == text);
            REQUIRE(pm_usable_size(p) >= size);
            if (committed)
                commit();
        }
        REQUIRE_OK(pm_free(p));
        commit();
        check();
    }
    // Undone as a whole.
    char *p = allocate(40);
    strcpy(p, text.c_str());
    commit();
    char *moved = static_cast<char *>(pm_realloc(p, 4000));
    REQUIRE(moved != p);
    strcpy(moved, "something else");
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(p == text);
    REQUIRE(pm_usable_size(p) == 48);
    REQUIRE(pm_usable_size(moved) == 0);
    check();
}

TEST_CASE_METHOD(Fixture, "calloc zeroes what was used before")
{
    for (size_t size : {64, 3000, 70000}) {
        char *p = allocate(size);
        memset(p, 0xAA, size);
        commit();
        REQUIRE_OK(pm_free(p));
        commit();
        for (int i = 0; i < 3; i++) {
            char *zeroed = static_cast<char *>(pm_calloc(c.get(), size, 1));
            REQUIRE(zeroed);
            REQUIRE(std::count(zeroed, zeroed + size, 0) == (long)size);
        }
        commit();
    }
}

TEST_CASE_METHOD(Fixture, "freed memory is not reused before the commit, but after it")
{
    for (size_t size : {48, 1000, 20000, 65536, 150000}) {
        INFO("size " << size);
        char *p = allocate(size);
        memset(p, 5, size);
        commit();
        REQUIRE_OK(pm_free(p));
        std::vector<char *> meanwhile;
        for (int i = 0; i < 30; i++) {
            char *q = allocate(size);
            REQUIRE((q + size <= p || q >= p + size));
            memset(q, 6, size);
            meanwhile.push_back(q);
        }
        REQUIRE(std::count(p, p + size, 5) == (long)size);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(std::count(p, p + size, 5) == (long)size);
        REQUIRE(pm_usable_size(p) >= size);
        for (char *q : meanwhile)
            REQUIRE(pm_usable_size(q) == 0);
        REQUIRE_OK(pm_free(p));
        commit();
        bool reused = false;
        for (int i = 0; i < 30; i++)
            reused |= allocate(size) == p;
        REQUIRE(reused);
        REQUIRE_OK(pm_rollback(c.get()));
    }
    check();
}

TEST_CASE_METHOD(Fixture, "what was allocated in this transaction can be reused in it")
{
    std::set<void *> seen;
    for (int i = 0; i < 100000; i++) {
        void *p = allocate(1000);
        seen.insert(p);
        REQUIRE_OK(pm_free(p));
    }
    REQUIRE(seen.size() < 100);
    uint64_t bytes = test::stats(c.get()).file_bytes;
    for (int i = 0; i < 1000; i++)
        REQUIRE_OK(pm_free(allocate(1 << 20)));
    REQUIRE(test::stats(c.get()).file_bytes <= bytes + (4 << 20));
}

// The allocator goes on behind what it gave out last, in a slab that is not full.
TEST_CASE_METHOD(Fixture, "a slot that is freed in front of the others is the next one")
{
    std::vector<void *> objects;
    for (int i = 0; i < 200; i++) { // several words of the bitmap
        objects.push_back(pm_malloc(c.get(), 64));
        REQUIRE(objects.back());
    }
    REQUIRE_OK(pm_free(objects[3])); // of this transaction
    REQUIRE(pm_malloc(c.get(), 64) == objects[3]);
    REQUIRE(pm_malloc(c.get(), 64)); // behind the others
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(objects[5]));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_malloc(c.get(), 64) == objects[5]);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "empty segments go back to the container")
{
    struct pm_stats start = test::stats(c.get());
    REQUIRE(start.segments_data == 0);
    std::vector<void *> objects;
    for (int i = 0; i < 20000; i++)
        objects.push_back(allocate(200));
    objects.push_back(allocate(1 << 20));
    commit();
    struct pm_stats full = test::stats(c.get());
    REQUIRE(full.segments_data > 70);
    std::shuffle(objects.begin(), objects.end(), std::mt19937(3));
    for (void *p : objects)
        REQUIRE_OK(pm_free(p));
    REQUIRE(test::stats(c.get()).segments_data >= full.segments_data - 16); // slabs go at commit
    commit();
    struct pm_stats empty = test::stats(c.get());
    REQUIRE(empty.segments_data <= 1); // one slab may wait for more of its size
    REQUIRE(empty.segments_free + empty.segments_data >= full.segments_data);
    REQUIRE(empty.file_bytes == full.file_bytes);
    check();
    // Another size takes them.
    for (int i = 0; i < 15000; i++)
        allocate(250);
    commit();
    REQUIRE(test::stats(c.get()).file_bytes == full.file_bytes);
    check();
}

TEST_CASE_METHOD(Fixture, "segments change between slabs, large objects and the log")
{
    std::mt19937 random(4);
    struct Object {
        unsigned char *p;
        size_t size;
        unsigned char fill;
    };
    std::vector<Object> objects;
    auto whole = [&] {
        for (const Object &o : objects)
            for (size_t at : {size_t{0}, o.size / 3, o.size - 1})
                if (o.p[at] != o.fill)
                    return false;
        return true;
    };
    for (int round = 0; round < 120; round++) {
        std::vector<Object> before = objects;
        // Free most, so that segments become empty, and fill them with something else.
        std::shuffle(objects.begin(), objects.end(), random);
        size_t keep = objects.size() / (round % 3 == 0 ? 20 : 2);
        for (size_t i = keep; i < objects.size(); i++)
            REQUIRE_OK(pm_free(objects[i].p));
        objects.resize(keep);
        size_t size = size_t{16} << random() % 14;
        for (size_t bytes = 0; bytes < 1 << 20; bytes += size) {
            Object o = {reinterpret_cast<unsigned char *>(allocate(size)), size,
                        (unsigned char)random()};
            memset(o.p, o.fill, size);
            objects.push_back(o);
        }
        if (round % 4 == 3) {
            REQUIRE_OK(pm_rollback(c.get()));
            objects = before;
        } else {
            commit();
        }
        REQUIRE(whole());
        if (round % 10 == 0)
            check();
        if (round % 25 == 24) {
            reopen();
            check();
            REQUIRE(whole());
        }
    }
}

TEST_CASE_METHOD(Fixture, "objects in the last slots, up to the container's very end")
{
    size_t size = 0;
    SECTION("of 16 bytes")
    {
        size = 16;
    }
    SECTION("of 1008 bytes")
    {
        size = 1008;
    }
    SECTION("of 4096 bytes")
    {
        size = 4096;
    }
    SECTION("of half a segment")
    {
        size = 30720;
    }
    SECTION("of a segment")
    {
        size = 65536;
    }
    SECTION("of three segments")
    {
        size = 3 * 65536;
    }
    if (size == 16) { // 4 million objects would take long
        c.reset();
        pm_options options = test::small();
        options.max_size = 4 << 20;
        path = directory / "little.pm";
        c = test::open(path, options);
    }
    std::vector<char *> objects;
    while (char *p = static_cast<char *>(pm_malloc(c.get(), size))) {
        p[0] = (char)objects.size();
        p[size - 1] = (char)(objects.size() + 1);
        objects.push_back(p);
        if (objects.size() % (1 + 100000 / size) == 0) // so that the log needs little of the space
            commit();
    }
    REQUIRE(failed_with(ENOSPC, {path.c_str()}));
    commit();
    check();
    char *base = reinterpret_cast<char *>((uintptr_t)objects[0] & ~((uintptr_t{1} << 30) - 1));
    uint64_t max = test::stats(c.get()).file_bytes;
    if (test::engine() != "log") // whose file has chunks
        REQUIRE(max == (size == 16 ? 4u << 20 : 64u << 20));
    if (test::engine() != "log" && (size == 65536 || size == 4096 || size == 16))
        REQUIRE((uintptr_t)*std::max_element(objects.begin(), objects.end()) + size ==
                (uintptr_t)base + max);
    reopen();
    check();
    for (size_t i = 0; i < objects.size(); i++)
        if (objects[i][0] != (char)i || objects[i][size - 1] != (char)(i + 1))
            FAIL("object " << i);
    // Full it is, but what is there can be changed and freed, a little at a time.
    size_t step = 1 + 100000 / size, freed = 0;
    for (size_t i = 0; i < objects.size(); i += 2, freed++) {
        REQUIRE_OK(pm_free(objects[i]));
        if (freed % step == 0)
            commit();
    }
    commit();
    for (size_t i = 0; i < freed; i++) {
        REQUIRE(pm_malloc(c.get(), size));
        if (i % step == 0)
            commit();
    }
    commit();
    check();
}

TEST_CASE_METHOD(Fixture, "a commit that finds the container full changes nothing", "[undo]")
{
    char *kept = allocate(1000);
    memset(kept, 8, 1000);
    commit();
    for (size_t size : {1000, 60000, 65536}) {
        INFO("size " << size);
        memset(kept, 9, 1000);
        std::vector<char *> objects;
        while (char *p = static_cast<char *>(pm_malloc(c.get(), size))) {
            p[0] = p[size - 1] = 1;
            objects.push_back(p);
        }
        for (int again = 0; again < 3; again++) {
            REQUIRE(pm_commit(c.get()) == -1);
            REQUIRE(failed_with(ENOSPC, {path.c_str()}));
            check();
            REQUIRE(objects.back()[size - 1] == 1);
            REQUIRE(pm_usable_size(objects.back()) >= size);
        }
        if (size == 1000) { // a slab stays, so that giving up objects frees nothing
            REQUIRE_OK(pm_rollback(c.get()));
        } else {
            for (size_t i = 0; i < objects.size() / 2; i++)
                REQUIRE_OK(pm_free(objects[i]));
            commit();
            REQUIRE(kept[0] == 9);
            reopen();
            REQUIRE(kept[0] == 9);
            for (size_t i = objects.size() / 2; i < objects.size(); i++) {
                REQUIRE(objects[i][0] == 1);
                REQUIRE_OK(pm_free(objects[i]));
            }
            memset(kept, 8, 1000);
            commit();
        }
        REQUIRE(kept[999] == 8);
        check();
    }
}

TEST_CASE_METHOD(Fixture, "a full container whose commit failed can be closed", "[undo]")
{
    char *kept = allocate(1000);
    memset(kept, 8, 1000);
    commit();
    size_t size = 0;
    SECTION("small objects")
    {
        size = 1000;
    }
    SECTION("two a slab")
    {
        size = 30000;
    }
    SECTION("one a segment")
    {
        size = 65536;
    }
    SECTION("four segments each")
    {
        size = 200000;
    }
    std::vector<char *> objects;
    while (char *p = static_cast<char *>(pm_malloc(c.get(), size))) {
        p[0] = p[size - 1] = 1;
        objects.push_back(p);
    }
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(failed_with(ENOSPC, {path.c_str()}));
    reopen();
    check();
    REQUIRE(std::count(kept, kept + 1000, 8) == 1000);
}

// A commit that gives back a slab has taken note of it before it fails.
TEST_CASE("after a commit that failed, a rollback brings back a slab that was emptied")
{
    constexpr size_t SIZE = 1000;
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    auto **root = static_cast<void **>(pm_calloc(c.get(), 1, sizeof(void *)));
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    REQUIRE_OK(pm_mark_pointer(root));
    std::vector<char *> objects;
    for (int i = 0; i < 300; i++) { // of several slabs
        objects.push_back(static_cast<char *>(pm_malloc(c.get(), SIZE)));
        REQUIRE(objects.back());
        memset(objects.back(), i, SIZE);
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (size_t i = 100; i < objects.size(); i++)
        REQUIRE_OK(pm_free(objects[i]));
    int on_the_stack;
    *root = &on_the_stack;
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(errno == EINVAL);
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    for (size_t i = 0; i < objects.size(); i++)
        REQUIRE(pm_usable_size(objects[i]) >= SIZE);
    for (int i = 0; i < 300; i++) {
        void *fresh = pm_malloc(c.get(), SIZE);
        REQUIRE(fresh);
        memset(fresh, 0, SIZE);
    }
    for (size_t i = 0; i < objects.size(); i++)
        REQUIRE(std::count(objects[i], objects[i] + SIZE, (char)i) == SIZE);
}

TEST_CASE_METHOD(Fixture, "large objects of exactly k segments, one byte less, one more")
{
    const size_t segment = 64 << 10;
    for (size_t k = 1; k <= 5; k++)
        for (size_t size : {k * segment - 1, k * segment, k * segment + 1}) {
            INFO("size " << size);
            uint64_t data = test::stats(c.get()).segments_data;
            char *p = allocate(size), *next = allocate(segment);
            if (size > segment / 2)
                REQUIRE((uintptr_t)p % segment == 0);
            size_t segments = (size + segment - 1) / segment;
            REQUIRE(pm_usable_size(p) == segments * segment);
            REQUIRE(test::stats(c.get()).segments_data == data + segments + 1);
            memset(p, 1, pm_usable_size(p));
            memset(next, 2, segment);
            commit();
            REQUIRE(std::count(p, p + pm_usable_size(p), 1) == (long)pm_usable_size(p));
            p[pm_usable_size(p) - 1] = 3;
            REQUIRE(next[0] == 2);
            REQUIRE_OK(pm_rollback(c.get()));
            REQUIRE(p[pm_usable_size(p) - 1] == 1);
            REQUIRE_OK(pm_free(p));
            REQUIRE_OK(pm_free(next));
            commit();
            REQUIRE(test::stats(c.get()).segments_data == data);
        }
    check();
}

TEST_CASE_METHOD(Fixture, "freeing the root removes it; setting it is part of the transaction")
{
    char *a = allocate(100), *b = allocate(100);
    REQUIRE_FALSE(pm_getroot(c.get()));
    REQUIRE(pm_setroot(c.get(), a, 113) == -1);
    REQUIRE(failed_with(EINVAL));
    REQUIRE(pm_setroot(c.get(), nullptr, 1) == -1);
    REQUIRE(failed_with(EINVAL));
    REQUIRE_FALSE(pm_getroot(c.get()));
    REQUIRE_OK(pm_setroot(c.get(), a, 112));
    REQUIRE(pm_getroot(c.get()) == a);
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE_FALSE(pm_getroot(c.get()));

    a = allocate(100), b = allocate(100);
    REQUIRE_OK(pm_setroot(c.get(), a, 0));
    commit();
    reopen();
    REQUIRE(pm_getroot(c.get()) == a);
    REQUIRE_OK(pm_setroot(c.get(), b, 100));
    REQUIRE_OK(pm_free(a));
    REQUIRE(pm_getroot(c.get()) == b);
    REQUIRE_OK(pm_free(b));
    REQUIRE_FALSE(pm_getroot(c.get()));
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(pm_getroot(c.get()) == a);
    REQUIRE_OK(pm_setroot(c.get(), nullptr, 0));
    commit();
    reopen();
    REQUIRE_FALSE(pm_getroot(c.get()));
    REQUIRE(pm_usable_size(a) == 112);
    check();
}

TEST_CASE_METHOD(Fixture, "a root of another container is refused")
{
    test::Container other = test::open(directory / "other.pm", test::small());
    void *p = pm_malloc(other.get(), 100);
    REQUIRE(pm_setroot(c.get(), p, 0) == -1);
    REQUIRE(failed_with(EINVAL, {path.c_str()}));
    REQUIRE_FALSE(pm_getroot(c.get()));
    REQUIRE_FALSE(pm_contains(c.get(), p));
    REQUIRE(pm_contains(other.get(), p));
    REQUIRE(pm_contains(nullptr, p));
    REQUIRE_OK(pm_free(p)); // each object knows its container
}

TEST_CASE_METHOD(Fixture, "clear frees everything, as part of the transaction")
{
    std::vector<char *> objects;
    for (size_t size : {16, 100, 1000, 10000, 100000, 1000000}) {
        objects.push_back(allocate(size));
        memset(objects.back(), 9, size);
    }
    REQUIRE_OK(pm_setroot(c.get(), objects[2], 0));
    commit();
    objects[0][0] = 1; // undone either way
    void *lost = pm_malloc(c.get(), 50);
    REQUIRE_OK(pm_clear(c.get()));
    REQUIRE_FALSE(pm_getroot(c.get()));
    REQUIRE(pm_usable_size(objects[1]) == 0);
    REQUIRE(pm_usable_size(lost) == 0);
    check();
    SECTION("rolled back")
    {
        char *p = allocate(100);
        memset(p, 1, 100);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(pm_getroot(c.get()) == objects[2]);
        for (char *o : objects)
            REQUIRE(std::count(o, o + 16, 9) == 16);
    }
    SECTION("committed")
    {
        commit();
        REQUIRE(test::stats(c.get()).segments_data == 0);
        check();
        reopen();
        REQUIRE_FALSE(pm_getroot(c.get()));
        for (char *o : objects)
            REQUIRE(pm_usable_size(o) == 0);
    }
    SECTION("with new objects in the same transaction")
    {
        std::vector<char *> fresh;
        for (int i = 0; i < 100; i++) {
            fresh.push_back(allocate(1000));
            memset(fresh.back(), i, 1000);
        }
        REQUIRE_OK(pm_setroot(c.get(), fresh[0], 0));
        commit();
        reopen();
        REQUIRE(pm_getroot(c.get()) == fresh[0]);
        for (int i = 0; i < 100; i++)
            REQUIRE(std::count(fresh[i], fresh[i] + 1000, (char)i) == 1000);
    }
    SECTION("twice")
    {
        REQUIRE_OK(pm_clear(c.get()));
        commit();
        REQUIRE_OK(pm_clear(c.get()));
        uint64_t commits = test::stats(c.get()).commits;
        commit();
        REQUIRE(test::stats(c.get()).commits == commits); // nothing was left to clear
    }
    check();
}

TEST_CASE_METHOD(Fixture, "against a model, at random")
{
    struct Model {
        std::map<unsigned char *, std::pair<size_t, unsigned char>> objects;
    } now, committed;
    std::mt19937 random(5);
    auto agrees = [&] {
        for (auto [p, what] : now.objects)
            if (pm_usable_size(p) < what.first || p[0] != what.second ||
                p[what.first - 1] != what.second)
                return false;
        return true;
    };
    for (int step = 0; step < 20000; step++) {
        unsigned dice = random() % 1000;
        if (dice < 500 || now.objects.empty()) {
            size_t size = random() % 10 ? 1 + random() % 300 : 1 + random() % 100000;
            auto *p = reinterpret_cast<unsigned char *>(allocate(size));
            REQUIRE(now.objects.count(p) == 0);
            REQUIRE(committed.objects.count(p) == 0);
            unsigned char fill = (unsigned char)random();
            p[0] = p[size - 1] = fill;
            now.objects[p] = {size, fill};
        } else {
            auto it = now.objects.lower_bound(reinterpret_cast<unsigned char *>(
                (uintptr_t)now.objects.begin()->first + random() % (8 << 20)));
            if (it == now.objects.end())
                it = now.objects.begin();
            if (dice < 960) {
                REQUIRE_OK(pm_free(it->first));
                now.objects.erase(it);
            } else if (dice < 980) {
                it->second.second ^= 0xFF;
                it->first[0] = it->first[it->second.first - 1] = it->second.second;
            } else if (dice < 994) {
                commit();
                committed = now;
            } else if (dice < 998) {
                REQUIRE_OK(pm_rollback(c.get()));
                now = committed;
                REQUIRE(agrees());
            } else {
                check();
                reopen(); // a close rolls back
                now = committed;
                REQUIRE(agrees());
                check();
            }
        }
    }
    commit();
    REQUIRE(agrees());
    check();
}

// A region of journaled words remembers up to JOURNAL_FEW (words/journal.h) that a transaction changes, and
// beyond that their range only.
TEST_CASE_METHOD(Fixture, "words of a bitmap are all recorded, be they few or many")
{
    std::set<char *> objects;
    while (objects.size() < 20 * BITMAP_SLOTS)
        objects.insert(allocate(32));
    std::vector<char *> slots(objects.begin(), objects.end()); // upwards, in one slab
    REQUIRE(slots.back() - slots.front() == static_cast<ptrdiff_t>(32 * (slots.size() - 1)));
    commit();
    uint32_t column = 0;
    for (uint32_t words : {3, 4, 5, 12})
        for (uint32_t step : {1, 7, 19}) { // upwards, here and there, downwards
            INFO(words << " words, every " << step << "th");
            std::set<char *> freed;
            for (uint32_t i = 0; i < words; i++)
                for (uint32_t twice : {0, 1}) // in a word
                    freed.insert(slots[(i + 1) * step % 20 * BITMAP_SLOTS + column + twice]);
            for (bool stays : {false, true}) {
                for (char *p : freed)
                    REQUIRE_OK(pm_free(p));
                REQUIRE_OK(stays ? pm_commit(c.get()) : pm_rollback(c.get()));
                check();
                reopen();
                for (char *p : slots)
                    if (objects.count(p))
                        REQUIRE((pm_usable_size(p) == 0) == (stays && freed.count(p)));
            }
            for (char *p : freed)
                objects.erase(p);
            column += 2;
        }
}
