// Commit and rollback as a program sees them; pm_dirty(), pm_reserve(), pm_stats().
#include "common/process.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using test::failed_with;
using test::page_word;

namespace
{

struct Fixture {
    static constexpr uint64_t PAGES = 200;
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, PAGES, test::small());

    void reopen()
    {
        c.reset();
        c = test::open(path, test::options());
    }
    void commit() { REQUIRE_OK(pm_commit(c.get())); }
    void rollback() { REQUIRE_OK(pm_rollback(c.get())); }
    struct pm_stats stats() { return test::stats(c.get()); }
    volatile uint64_t &word(uint64_t page) { return page_word(c.get(), page); }
    uint64_t sum()
    {
        uint64_t total = 0;
        for (uint64_t i = 0; i < PAGES; i++)
            total += word(i);
        return total;
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "rollback restores contents, allocations, frees and the root")
{
    char *a = static_cast<char *>(pm_malloc(c.get(), 1000));
    char *b = static_cast<char *>(pm_malloc(c.get(), 300000));
    REQUIRE((a && b));
    memset(a, 1, 1000);
    memset(b, 2, 300000);
    void *root = pm_getroot(c.get());
    commit();
    for (int again = 0; again < 3; again++) {
        memset(a, 11, 1000);
        memset(b, 12, 300000);
        for (uint64_t i = 0; i < PAGES; i++)
            word(i) = i + 1;
        void *fresh = pm_malloc(c.get(), 500), *fresh_large = pm_malloc(c.get(), 500000);
        REQUIRE((fresh && fresh_large));
        memset(fresh, 3, 500);
        memset(fresh_large, 3, 500000);
        REQUIRE_OK(pm_free(b));
        REQUIRE_OK(pm_setroot(c.get(), a, 0));
        REQUIRE_OK(pm_free(a));
        rollback();
        REQUIRE(pm_getroot(c.get()) == root);
        REQUIRE(sum() == 0);
        REQUIRE(std::count(a, a + 1000, 1) == 1000);
        REQUIRE(std::count(b, b + 300000, 2) == 300000);
        REQUIRE(pm_usable_size(fresh) == 0);
        REQUIRE(pm_usable_size(fresh_large) == 0);
        REQUIRE_OK(pm_check(c.get()));
        if (again == 1) { // and a rolled-back transaction may go on to commit something else
            word(7) = 7;
            commit();
            word(7) = 0;
            commit();
        }
    }
    rollback(); // of nothing
    REQUIRE(stats().rollbacks == 4);
    reopen();
    REQUIRE(std::count(a, a + 1000, 1) == 1000);
    REQUIRE(sum() == 0);
}

TEST_CASE_METHOD(Fixture, "closing rolls back")
{
    word(3) = 3;
    commit();
    word(3) = 4;
    word(5) = 5;
    REQUIRE(pm_malloc(c.get(), 100));
    reopen();
    REQUIRE(word(3) == 3);
    REQUIRE(word(5) == 0);
    REQUIRE_FALSE(stats().recovered);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "a rolled-back page is flushed and listed by the next commit")
{
    word(3) = 1;
    commit();
    word(3) = 2;
    rollback();
    word(3) = 3;
    word(9) = 9;
    commit();
    word(3) = 4;
    rollback();
    REQUIRE(word(3) == 3);
    reopen();
    REQUIRE(word(3) == 3);
    REQUIRE(word(9) == 9);
}

TEST_CASE_METHOD(Fixture, "many transactions, any of them rolled back")
{
    std::vector<uint64_t> committed(PAGES), now(PAGES);
    uint64_t seed = 12345;
    auto random = [&] { return (seed = seed * 6364136223846793005 + 1442695040888963407) >> 33; };
    for (int step = 0; step < 3000; step++) {
        // Some pages are hot, most are cold, and now and then all are touched.
        uint64_t stores = random() % 500 == 0 ? PAGES : random() % 6;
        for (uint64_t i = 0; i < stores; i++) {
            uint64_t page = random() % 3 ? random() % 5 : random() % PAGES;
            word(page) = now[page] = random();
        }
        if (random() % 4 == 0) {
            rollback();
            now = committed;
        } else {
            commit();
            committed = now;
        }
        if (step % 50 == 0)
            for (uint64_t i = 0; i < PAGES; i++)
                REQUIRE(word(i) == now[i]);
        if (step % 500 == 499) {
            REQUIRE_OK(pm_check(c.get()));
            reopen();
        }
    }
    for (uint64_t i = 0; i < PAGES; i++)
        REQUIRE(word(i) == committed[i]);
}

TEST_CASE_METHOD(Fixture, "errno survives a store")
{
    errno = 77;
    word(60) = 1;
    int after = errno;
    REQUIRE(after == 77);
    REQUIRE(stats().faults == (test::stores() ? 0 : 1));
}

TEST_CASE_METHOD(Fixture, "a store across two pages, and stores of all widths")
{
    char *bytes = static_cast<char *>(pm_getroot(c.get()));
    const uint64_t value = 0x1122334455667788;
    memcpy(bytes + 10 * 4096 - 4, &value, sizeof value);
    asm volatile("lock; orl $0x40, (%0)" ::"r"(bytes + 20 * 4096) : "memory");
    asm volatile("movb $7, (%0)" ::"r"(bytes + 22 * 4096 + 5) : "memory");
    void *to = bytes + 30 * 4096 - 8, *from = bytes;
    uint64_t count = 4096 * 3;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
    rollback();
    REQUIRE(std::count(bytes, bytes + PAGES * 4096, 0) == (long)(PAGES * 4096));
    memcpy(bytes + 10 * 4096 - 4, &value, sizeof value);
    commit();
    reopen();
    REQUIRE(memcmp(bytes + 10 * 4096 - 4, &value, sizeof value) == 0);
}

TEST_CASE_METHOD(Fixture, "pm_dirty opens pages without a signal")
{
    char *bytes = static_cast<char *>(pm_getroot(c.get()));
    bool undo = test::mode() == "undo", faults = !test::stores();
    uint64_t rounds = stats().rounds;
    REQUIRE_OK(pm_dirty(bytes + 10 * 4096 + 4095, 4096 * 20 + 2));
    struct pm_stats after = stats();
    REQUIRE(after.rounds == rounds + undo); // redo logs at the commit
    REQUIRE(after.pages_logged == 22 * undo);
    memset(bytes + 10 * 4096, 6, 22 * 4096);
    REQUIRE(stats().faults == 0);
    bytes[9 * 4096] = 1;
    bytes[32 * 4096] = 1;
    REQUIRE(stats().faults == 2 * faults);
    REQUIRE_OK(pm_dirty(bytes + 11 * 4096, 4096)); // again costs nothing
    REQUIRE(stats().pages_logged == 24 * undo);
    REQUIRE(stats().rounds == rounds + 3 * undo);
    rollback();
    REQUIRE(std::count(bytes, bytes + 50 * 4096, 0) == 50 * 4096);

    REQUIRE_OK(pm_dirty(bytes, 0));
    REQUIRE_OK(pm_dirty(bytes, 200 * 4096));
    REQUIRE(stats().pages_logged == 200 * undo);
    commit();
    REQUIRE(stats().commits == 0); // announced is not changed
}

TEST_CASE_METHOD(Fixture, "pm_dirty outside of data")
{
    char *bytes = static_cast<char *>(pm_getroot(c.get()));
    char *base = reinterpret_cast<char *>((uintptr_t)bytes & ~((uintptr_t{1} << 30) - 1));
    void *small = pm_malloc(c.get(), 16);
    commit();
    char *slab = reinterpret_cast<char *>((uintptr_t)small & ~(uintptr_t)65535);
    int local;
    struct Bad {
        void *p;
        size_t length;
    };
    const Bad bad[] = {{&local, 4},           {nullptr, 1},      {base, 1},
                       {base + 4096 * 3, 8},  {base + 65536, 1}, {bytes, SIZE_MAX},
                       {bytes, SIZE_MAX / 2}, {bytes, 64 << 20}, {bytes - 1, 1},
                       {bytes - 1, 2},        {slab, 1},         {base + (64 << 20) - 1, 1},
                       {base + (64 << 20), 1}};
    for (const Bad &b : bad) {
        INFO(b.p << ", " << b.length);
        if (b.p == base + 65536 && test::engine() == "log") // objects are there, not the log
            continue;
        REQUIRE(pm_dirty(b.p, b.length) == -1);
        REQUIRE(failed_with(EINVAL));
    }
    REQUIRE(stats().pages_logged == 0);
    REQUIRE_OK(pm_dirty(small, 16));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "system calls that write to memory", "[faults]")
{
    char *bytes = static_cast<char *>(pm_getroot(c.get()));
    int fd = open("/dev/zero", O_RDONLY);
    REQUIRE(fd >= 0);
    REQUIRE(read(fd, bytes, 10000) == -1); // as the header warns
    REQUIRE(errno == EFAULT);
    memset(bytes, 1, 4096);
    REQUIRE(read(fd, bytes, 10000) == 4096); // as much as is open
    rollback();
    commit();

    bytes[100] = 5;
    commit();
    REQUIRE_OK(pm_dirty(bytes, 10000));
    REQUIRE(read(fd, bytes, 10000) == 10000);
    REQUIRE(bytes[100] == 0);
    REQUIRE(write(fd, bytes, 0) <= 0);
    rollback();
    REQUIRE(bytes[100] == 5);
    REQUIRE_OK(pm_dirty(bytes, 10000));
    REQUIRE(read(fd, bytes, 10000) == 10000);
    commit();
    close(fd);
    reopen();
    REQUIRE(bytes[100] == 0);
}

TEST_CASE_METHOD(Fixture, "system calls that pmcc announces", "[stores]")
{
    char *bytes = static_cast<char *>(pm_getroot(c.get()));
    int fd = open("/dev/zero", O_RDONLY);
    REQUIRE(fd >= 0);
    memset(bytes, 1, 20000);
    commit();
    REQUIRE(read(fd, bytes, 10000) == 10000);
    rollback();
    REQUIRE(std::count(bytes, bytes + 20000, 1) == 20000);
    REQUIRE(read(fd, bytes, 10000) == 10000);
    commit();
    close(fd);
    reopen();
    REQUIRE(std::count(bytes, bytes + 20000, 1) == 10000);
}

TEST_CASE_METHOD(Fixture, "pm_reserve takes the log's space ahead")
{
    uint64_t log = stats().segments_log, before = stats().file_bytes;
    REQUIRE_OK(pm_reserve(c.get(), 0));
    REQUIRE_OK(pm_reserve(c.get(), 1));
    REQUIRE(stats().segments_log == log);
    REQUIRE_OK(pm_reserve(c.get(), PAGES * 4096));
    uint64_t reserved = stats().segments_log, bytes = stats().file_bytes;
    REQUIRE((test::engine() == "log" ? (bytes - before) / 4096 >= PAGES : reserved >= log + PAGES / 14 - 1));
    for (uint64_t i = 0; i < PAGES; i++)
        word(i * 7 % PAGES) = i;
    REQUIRE(stats().segments_log == reserved);
    REQUIRE(stats().file_bytes == bytes);
    commit();
    for (size_t bytes : {size_t{64 << 20}, size_t{1} << 40, SIZE_MAX - 1, SIZE_MAX}) {
        REQUIRE(pm_reserve(c.get(), bytes) == -1);
        REQUIRE(failed_with(ENOSPC, {path.c_str()}));
    }
    REQUIRE_OK(pm_check(c.get()));
    word(0) = 1;
    commit();
}

TEST_CASE_METHOD(Fixture, "pm_reserve counts what was stored before")
{
    for (uint64_t line = 0; line < PAGES * 64; line++)
        (&word(0))[line * 8] = 1;
    REQUIRE_OK(pm_reserve(c.get(), 1));
    uint64_t bytes = stats().file_bytes;
    commit();
    REQUIRE(stats().file_bytes == bytes);
}

TEST_CASE_METHOD(Fixture, "pm_stats counts")
{
    struct pm_stats s = stats();
    REQUIRE(s.commits == 0);
    REQUIRE(s.rounds == 0);
    REQUIRE(s.faults == 0);
    REQUIRE(s.recovery_ns == 0);
    REQUIRE(s.segments_data == PAGES / 16 + 1);
    if (test::engine() != "log") // whose file has chunks
        REQUIRE((s.segments_data + s.segments_log + s.segments_free + 1) * 65536 == s.file_bytes);
    REQUIRE(std::string(s.medium) == "pmem");
    REQUIRE(std::string(s.engine) == test::engine());
    REQUIRE(std::string(s.tracker) == (test::stores() ? "stores" : "faults"));
    REQUIRE(s.power_safe);
    word(0) = 1;
    REQUIRE(stats().epoch == s.epoch);
    REQUIRE(stats().pages_open == (!test::stores()));
    commit();
    REQUIRE(stats().epoch == s.epoch + 1);
    REQUIRE(stats().commits == 1);
    word(0) = 2;
    rollback();
    REQUIRE(stats().epoch == s.epoch + 1);
    REQUIRE(stats().rollbacks == 1);

    SECTION("and fills no more than it was given")
    {
        struct pm_stats old;
        memset(&old, 0xEE, sizeof old);
        old.size = offsetof(struct pm_stats, rounds);
        REQUIRE_OK(pm_stats(c.get(), &old));
        REQUIRE(old.size == offsetof(struct pm_stats, rounds));
        REQUIRE(old.commits == 1);
        REQUIRE(old.rounds == 0xEEEEEEEEEEEEEEEE);
    }
    SECTION("and refuses other sizes")
    {
        s.size = 0;
        REQUIRE(pm_stats(c.get(), &s) == -1);
        REQUIRE(failed_with(EINVAL));
        s.size = sizeof s + 1;
        REQUIRE(pm_stats(c.get(), &s) == -1);
        REQUIRE(failed_with(EINVAL));
        REQUIRE(pm_stats(c.get(), nullptr) == -1);
        REQUIRE(failed_with(EINVAL));
    }
}

TEST_CASE_METHOD(Fixture, "stores to objects that the same transaction clears away")
{
    void *small[3];
    for (void *&p : small) {
        p = pm_malloc(c.get(), 48);
        REQUIRE(p);
        memset(p, 1, 48);
    }
    commit();
    SECTION("of slabs that the allocator knows") {}
    SECTION("of slabs that it has not looked at since the opening")
    {
        reopen();
    }
    for (void *p : small)
        memset(p, 2, 48);
    word(3) = 3;
    REQUIRE_OK(pm_clear(c.get()));
    SECTION("committed")
    {
        commit();
        REQUIRE(stats().segments_data == 0);
    }
    SECTION("rolled back")
    {
        rollback();
        for (void *p : small)
            REQUIRE(*static_cast<char *>(p) == 1);
        REQUIRE(word(3) == 0);
    }
    REQUIRE_OK(pm_check(c.get()));
    void *p = pm_calloc(c.get(), 1, 64);
    REQUIRE(p);
    commit();
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("addresses beyond max_size are in no container")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c", test::small());
    test::Container other = test::open(directory / "other", test::small());
    char *inside = static_cast<char *>(pm_malloc(c.get(), 16));
    REQUIRE(inside);
    // Within the container's address slot of 1 GiB, but beyond its 64 MiB.
    char *beyond = inside + (64 << 20);
    REQUIRE(pm_contains(nullptr, inside));
    REQUIRE_FALSE(pm_contains(nullptr, beyond));
    for (size_t length : {(size_t)1, SIZE_MAX, SIZE_MAX - 8191}) {
        REQUIRE(pm_dirty(beyond, length) == -1);
        REQUIRE(test::failed_with(EINVAL));
    }
    REQUIRE(pm_dirty(inside, SIZE_MAX) == -1);
    REQUIRE(test::failed_with(EINVAL));
    REQUIRE(pm_free(beyond) == -1);
}

TEST_CASE("pm_check while another thread stores finds nothing")
{
    test::Directory directory;
    constexpr uint64_t PAGES = 3000;
    test::Container c = test::open_with_pages(directory / "c", PAGES, test::small());
    std::atomic<bool> stop = false;
    std::thread storing([&] {
        for (uint64_t page = 0; page < PAGES && !stop; page++)
            test::page_word(c.get(), page * 7 % PAGES) = page;
        stop = true;
    });
    int damaged = 0;
    while (!stop) {
        damaged += pm_check(c.get()) != 0;
        usleep(50); // the lock is not fair: let the other thread have it
    }
    storing.join();
    INFO(pm_errormsg());
    REQUIRE(damaged == 0);
}
