// A full disk under the log engine, on pmem and on an ordinary file. Commits fail cleanly, lose nothing, and
// can be rolled back, or tried again when there is space.
#include "common/file_limit.hpp"
#include "common/format.hpp"
#include "common/process.hpp"
#include "system/disk.hpp"
#include "system/full.hpp"
#include "unit/linked.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>

using test::failed_with;
using test::page_word;
using namespace test::full;

namespace
{

constexpr uint64_t KiB = 1 << 10;

struct Fixture {
    test::Disk disk{64 * MiB};
    const std::string path = disk / "c.pm";
    test::Container c = test::open_with_pages(path, PAGES, how());

    void cannot_commit()
    {
        const struct pm_stats before = test::stats(c.get());
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(failed_with(ENOSPC, {path.c_str(), "free disk space", "roll back"}));
        const struct pm_stats after = test::stats(c.get());
        REQUIRE(after.epoch == before.epoch);
        REQUIRE(after.commits == before.commits);
        REQUIRE(after.lines_logged == before.lines_logged);
        REQUIRE_OK(pm_check(c.get()));
    }

    // Closed, and as a dead process would leave it, each line has this value.
    void reopens_with(uint64_t value)
    {
        const std::string left = test::read_file(path);
        REQUIRE(holds(c.get(), value));
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        c = test::open(path, test::options());
        REQUIRE(holds(c.get(), value));
        c.reset();
        test::write_file(path, left);
        c = test::open(path, test::options());
        REQUIRE(test::stats(c.get()).recovered);
        REQUIRE(holds(c.get(), value));
        REQUIRE_OK(pm_check(c.get()));
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "a commit that finds the disk full can be tried again", "[disk]")
{
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    store(c.get(), 2);
    disk.fill();
    // Some chunks may be free. So the record is larger than all of them.
    const uint64_t bytes = std::filesystem::file_size(path);
    bool full = pm_commit(c.get()) != 0;
    for (uint64_t value = 3; !full; value++) {
        store(c.get(), value);
        full = pm_commit(c.get()) != 0;
        REQUIRE(value < 10);
    }
    const uint64_t value = page_word(c.get(), 0);
    const std::string crashed = test::read_file(path);
    for (int again = 0; again < 3; again++) {
        cannot_commit();
        REQUIRE(holds(c.get(), value));
    }
    REQUIRE(std::filesystem::file_size(path) == bytes);
    SECTION("when there is space")
    {
        disk.free(16 * MiB);
        REQUIRE_OK(pm_commit(c.get()));
        reopens_with(value);
    }
    SECTION("a little space at a time")
    {
        unsigned failures = 0;
        while (pm_commit(c.get()) != 0) {
            REQUIRE(failed_with(ENOSPC));
            disk.free(64 * KiB);
            REQUIRE(++failures < 1000);
        }
        REQUIRE(failures > 3);
        reopens_with(value);
    }
    SECTION("or rolled back")
    {
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(holds(c.get(), value - 1));
        reopens_with(value - 1);
        disk.free_all();
        store(c.get(), value + 1);
        REQUIRE_OK(pm_commit(c.get()));
        reopens_with(value + 1);
    }
    SECTION("and a crash leaves the commit before")
    {
        c.reset();
        disk.free_all();
        test::write_file(path, crashed);
        c = test::open(path, test::options());
        REQUIRE(test::stats(c.get()).recovered);
        reopens_with(value - 1);
    }
}

TEST_CASE_METHOD(Fixture, "small commits go on on a full disk", "[disk]")
{
    store(c.get(), 1); // all lines, so that no chunk is dead
    REQUIRE_OK(pm_commit(c.get()));
    disk.fill();
    for (uint64_t i = 0; i < 5000; i++) {
        page_word(c.get(), 0) = i;
        REQUIRE_OK(pm_commit(c.get()));
    }
    page_word(c.get(), 0) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    reopens_with(1);
}

// A container whose lines are all stored to, and then one after the other at random, a commit each.
struct Lines {
    const uint64_t count;
    test::Container c;
    char *at;

    Lines(const std::string &path, uint64_t bytes)
        : count(bytes / 64), c(test::open(path, test::small(PM_CREATE))),
          at(static_cast<char *>(pm_malloc(c.get(), bytes)))
    {
        REQUIRE(at);
        REQUIRE_OK(pm_setroot(c.get(), at, 0));
        REQUIRE_OK(pm_dirty(at, bytes));
        memset(at, 'x', bytes);
        REQUIRE_OK(pm_commit(c.get()));
    }
    // Returns the most bytes that a commit has logged.
    uint64_t change()
    {
        std::mt19937_64 random(1);
        uint64_t most = 0, before = test::stats(c.get()).bytes_logged;
        for (uint64_t i = 0; i < 2 * count; i++) {
            char *line = at + 64 * (random() % count);
            REQUIRE_OK(pm_dirty(line, 64));
            memset(line, (int)i, 64);
            REQUIRE_OK(pm_commit(c.get()));
            const uint64_t now = test::stats(c.get()).bytes_logged;
            most = std::max(most, now - before);
            before = now;
        }
        return most;
    }
};

TEST_CASE(
    "no commit cleans a whole chunk while the file reaches what the disk, or a limit, has room for",
    "[disk]")
{
    const bool limited = GENERATE(false, true);
    const uint64_t most = 3 * MiB - (limited ? 0 : 32 * KiB); // a part of a chunk, which is no room
    test::Disk disk(limited ? 64 * MiB : most);
    Lines lines(disk / "c.pm", 2 * MiB);
    std::optional<test::FileLimit> limit;
    if (limited)
        limit.emplace(most);
    CHECK(lines.change() < 12 * KiB);
    limit.reset();
    REQUIRE(std::filesystem::file_size(disk / "c.pm") > most - MiB / 8);
}

TEST_CASE("a file system that tells no limit is not taken for a full one", "[disk]")
{
    uint64_t bytes[2];
    for (const bool told : {false, true}) {
        test::Disk disk(told ? 64 * MiB : 0);
        Lines lines(disk / "c.pm", MiB);
        lines.change();
        bytes[told] = std::filesystem::file_size(disk / "c.pm");
    }
    REQUIRE(bytes[false] == bytes[true]);
}

// Each line is a run, which its record names: no chunk can be as dense as one of long runs.
TEST_CASE_METHOD(Fixture, "a full disk of scattered lines ends a commit that has no room", "[disk]")
{
    volatile uint64_t *words = &page_word(c.get(), 0);
    for (uint64_t line = 0; line < PAGES * 64; line += 2)
        words[line * 8] = 1;
    REQUIRE_OK(pm_commit(c.get()));
    disk.fill();
    auto store_to = [&](uint64_t lines) {
        for (uint64_t line = 1; line < lines; line += 2)
            words[line * 8] = 2;
        return pm_commit(c.get());
    };
    uint64_t lines = PAGES * 64;
    for (; store_to(lines) != 0; lines /= 2) { // fewer and fewer, until there is room for them
        REQUIRE(failed_with(ENOSPC));
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(lines > 1);
    }
    REQUIRE(lines < PAGES * 64);
    for (uint64_t line = 0; line < PAGES * 64; line++)
        if (words[line * 8] != (line % 2 == 0 ? 1 : line < lines ? 2 : 0))
            FAIL("line " << line);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "a reservation finds the disk full, and the commit after it has room",
                 "[disk]")
{
    disk.fill(MiB);
    REQUIRE(pm_reserve(c.get(), 16 * MiB) == -1);
    REQUIRE(failed_with(ENOSPC, {path.c_str()}));
    disk.free(48 * MiB);
    REQUIRE_OK(pm_reserve(c.get(), PAGES * 4096));
    disk.fill();
    store(c.get(), 5);
    REQUIRE_OK(pm_commit(c.get()));
    reopens_with(5);
}

TEST_CASE("a reservation counts the map of the pointers that come", "[disk][stores]")
{
    constexpr uint64_t MANY = 1500;
    test::Disk disk{64 * MiB};
    pm_options movable = how();
    movable.flags |= PM_MOVABLE;
    const test::Container c = test::open_with_pages(disk / "c.pm", MANY, movable);
    auto **words = static_cast<void **>(pm_getroot(c.get()));
    REQUIRE_OK(pm_reserve(c.get(), MANY * 4096));
    disk.fill();
    for (uint64_t i = 0; i < MANY * 512; i++)
        words[i] = words + i;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a file stays small though nobody waits for its commits", "[disk]")
{
    test::Disk disk{64 * MiB};
    const std::string path = disk / "c.pm";
    const test::Container c = test::open_with_pages(path, 25, how());
    for (uint64_t i = 1; i <= 500; i++) {
        for (uint64_t line = 0; line < 25 * 64; line++)
            (&page_word(c.get(), 0))[line * 8] = i;
        REQUIRE(pm_commit_async(c.get()).container);
    }
    CHECK(std::filesystem::file_size(path) < 2 * MiB); // 25 MiB if dead chunks waited for a round
}

namespace
{

constexpr uint64_t NODES = 5000;

// A container whose pointers are on nearly all its lines. It is open, and so are its addresses taken.
struct Movable {
    test::Disk disk{64 * MiB};
    const std::string path = disk / "c.pm", copy = disk / "copy.pm";
    test::Container original;

    static pm_options movable(unsigned flags = 0)
    {
        pm_options o = how();
        o.flags = PM_MOVABLE | flags;
        return o;
    }

    Movable()
    {
        linked::recorded = test::stores();
        original = test::open(path, movable(PM_CREATE));
        linked::build(original.get(), NODES);
        REQUIRE_OK(pm_commit(original.get()));
        REQUIRE_OK(pm_copy(original.get(), copy.c_str(), 0, 0));
    }

    // The copy has no room to be relocated: as often as it is tried.
    void cannot_relocate()
    {
        disk.fill();
        for (int again = 0; again < 2; again++) {
            const pm_options o = movable(PM_RELOCATE);
            REQUIRE(pm_open(copy.c_str(), &o) == nullptr);
            REQUIRE(failed_with(ENOSPC, {copy.c_str(), "free disk space"}));
        }
    }

    void opens(const pm_options &o, bool relocated)
    {
        test::Container c = test::open(copy, o);
        REQUIRE((test::stats(c.get()).pointers_moved > 0) == relocated);
        linked::require(c.get(), NODES);
        REQUIRE_OK(pm_check(c.get()));
    }
};

} // namespace

TEST_CASE_METHOD(Movable, "a relocation that has no room leaves the container where it was",
                 "[disk]")
{
    cannot_relocate();
    SECTION("so it opens there on the full disk")
    {
        original.reset();
        opens(movable(), false);
        opens(movable(PM_READONLY), false);
    }
    SECTION("so it opens elsewhere with translation on the full disk")
    {
        test::Container c = test::open(copy, movable());
        linked::require(c.get(), NODES);
        REQUIRE_OK(pm_check(c.get()));
    }
    SECTION("and it can be relocated when there is space")
    {
        disk.free_all();
        opens(movable(PM_RELOCATE), true);
        opens(movable(PM_RELOCATE), false);
    }
}

TEST_CASE_METHOD(Movable, "a relocation that a crash interrupted before its record needs no room",
                 "[disk]")
{
    // The addresses of another container of this size, in the arena and free.
    const uint64_t place = FORMAT_STATE + offsetof(format_state, base);
    const uint64_t base = seal_payload(test::read_word(copy, place));
    const uint64_t slot = UINT64_C(1) << 30,
                   there = base % (64 * slot) == 0 ? base + slot : base - slot;
    const uint64_t target = seal(there);
    test::patch_file(copy, FORMAT_STATE + offsetof(format_state, target), &target, sizeof target);
    disk.fill();
    original.reset();
    const pm_options o = movable();
    REQUIRE(pm_open(copy.c_str(), &o) == nullptr);
    REQUIRE(failed_with(ENOSPC, {copy.c_str()}));
    opens(o, false);
}
