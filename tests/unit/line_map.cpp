// The log engine's map as a table (txn/log/line_map.h), beside an array that says the same.

#include "common/fixture.hpp"

#include <algorithm>
#include <random>
#include <sys/mman.h>

extern "C" {
#include "txn/log/line_map.h"
}

namespace
{

constexpr uint64_t GROUP = LINE_MAP_GROUP, PAGE_GROUPS = PM_PAGE / sizeof(uint32_t);
constexpr uint64_t UNIT = 64 * GROUP, GROUPS = 64 * PAGE_GROUPS, LINES = GROUPS * GROUP;

// As tables_take() gives it.
template <class T> T *table(uint64_t count)
{
    void *p = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(p != MAP_FAILED);
    return static_cast<T *>(p);
}

struct Map : line_map {
    Map() : line_map{}
    {
        count = GROUPS;
        groups = table<uint32_t>(GROUPS);
        blocks = table<line_block>(GROUPS);
        owners = table<uint32_t>(GROUPS);
    }
    ~Map()
    {
        munmap(groups, GROUPS * sizeof *groups);
        munmap(blocks, GROUPS * sizeof *blocks);
        munmap(owners, GROUPS * sizeof *owners);
    }
    Map(const Map &) = delete;

    void enter(uint64_t line, uint64_t n, uint32_t place)
    {
        for (uint64_t i = 0; i < n; i++)
            *line_map_entry(this, line + i) = place == 0 ? 0 : place + (uint32_t)i;
        line_map_settle(this, line, n);
    }

    uint64_t resident(const void *from, uint64_t bytes) const
    {
        std::vector<unsigned char> pages(bytes / PM_PAGE);
        REQUIRE(mincore(const_cast<void *>(from), bytes, pages.data()) == 0);
        return (uint64_t)std::count_if(pages.begin(), pages.end(), [](int p) { return p & 1; }) * PM_PAGE;
    }
};

} // namespace

TEST_CASE("lines that lie together have no entries, up to the edges of a group")
{
    for (uint64_t first : {uint64_t{0}, GROUP - 1, GROUP, GROUP + 1, LINES - 2 * GROUP})
        for (uint64_t n : {GROUP - 1, GROUP, GROUP + 1, 2 * GROUP}) {
            CAPTURE(first, n);
            Map map;
            map.enter(first, n, 5000);
            const uint64_t whole = (first + n) / GROUP - (first + GROUP - 1) / GROUP;
            const uint64_t touched = (first + n + GROUP - 1) / GROUP - first / GROUP;
            CHECK(map.used == touched - (first + n < first + GROUP - 1 ? 0 : whole));
            CHECK(line_map_together(&map, first, LINES - first) == n);
            CHECK(line_map_together(&map, first, n - 1) == n - 1);
            for (uint64_t i = 0; i < n; i++)
                CHECK(line_map_at(&map, first + i) == 5000 + i);
            CHECK((first == 0 || line_map_at(&map, first - 1) == 0));
            CHECK((first + n == LINES || line_map_at(&map, first + n) == 0));
            map.enter(first, n, 0);
            CHECK(map.used == 0);
            CHECK(line_map_together(&map, first, n) == 0);
        }
}

TEST_CASE("a group is split for one line that lies elsewhere, and for a delta")
{
    for (uint64_t i = 0; i < GROUP; i++)
        for (uint32_t entry : {4999u + (uint32_t)i, LOG_HAS_DELTA | (5000u + (uint32_t)i), 0u}) {
            CAPTURE(i, entry);
            Map map;
            map.enter(0, GROUP, 5000);
            REQUIRE(map.used == 0);
            *line_map_entry(&map, i) = entry;
            line_map_settle(&map, i, 1);
            CHECK(map.used == 1);
            for (uint64_t n = 0; n < GROUP; n++)
                CHECK(line_map_at(&map, n) == (n == i ? entry : 5000 + n));
            CHECK(line_map_together(&map, 0, GROUP) == (entry == 4999 ? 1 : i));
            *line_map_entry(&map, i) = 5000 + (uint32_t)i;
            line_map_settle(&map, i, 1);
            CHECK(map.used == 0);
        }
}

TEST_CASE("numbers of deltas that follow one another are no places")
{
    Map map;
    for (uint32_t i = 0; i < GROUP; i++)
        *line_map_entry(&map, i) = LOG_HAS_DELTA | i;
    line_map_settle(&map, 0, GROUP);
    CHECK(map.used == 1);
    CHECK(line_map_at(&map, 3) == (LOG_HAS_DELTA | 3));
    CHECK(line_map_together(&map, 0, GROUP) == 0);
}

TEST_CASE("random entries agree with an array, and blocks are used again")
{
    Map map;
    std::mt19937 random(1);
    std::vector<uint32_t> copy(LINES);
    const uint64_t end = 4 * UNIT;
    for (int i = 0; i < 200'000; i++) {
        const uint64_t line = random() % end, n = std::min<uint64_t>(1 + random() % 40, end - line);
        if (random() % 64 == 0) {
            const uint64_t unit = line / UNIT * UNIT;
            line_map_leave(&map, unit, UNIT);
            line_map_trim(&map);
            std::fill_n(copy.begin() + (long)unit, UNIT, 0);
            continue;
        }
        const uint32_t place = random() % 4 == 0 ? 0 : 1 + random() % 1000;
        map.enter(line, n, place);
        for (uint64_t k = 0; k < n; k++)
            copy[line + k] = place == 0 ? 0 : place + (uint32_t)k;
        const uint64_t at = random() % end, most = 1 + random() % 100;
        REQUIRE(line_map_at(&map, at) == copy[at]);
        uint64_t together = 0;
        while (together < most && copy[at] != 0 && copy[at + together] == copy[at] + together)
            together++;
        REQUIRE(line_map_together(&map, at, most) == together);
    }
    for (uint64_t line = 0; line < end; line++)
        REQUIRE(line_map_at(&map, line) == copy[line]);
    CHECK(map.known <= end / GROUP);
}

TEST_CASE("groups give their memory back, a page of them at a time")
{
    Map map;
    const auto resident = [&] { return map.resident(map.groups, GROUPS * sizeof *map.groups); };
    for (uint64_t line = 0; line < 2 * PAGE_GROUPS * GROUP; line += UNIT)
        map.enter(line, UNIT, 1 + (uint32_t)line);
    REQUIRE(resident() == 2 * PM_PAGE);
    CHECK(map.known <= UNIT / GROUP);
    for (uint64_t line = 0; line < PAGE_GROUPS * GROUP; line += UNIT) {
        CHECK(resident() == 2 * PM_PAGE);
        line_map_leave(&map, line, UNIT);
    }
    CHECK(resident() == PM_PAGE);
    CHECK(line_map_together(&map, PAGE_GROUPS * GROUP, LINES) == UNIT * 16);
}

TEST_CASE("memory goes back when most of the map has gone, and what is left is what it was")
{
    const uint64_t units = LINES / UNIT, kept = units / 4 - 1; // the first number with which blocks move
    const auto place = [](uint64_t line) { return (uint32_t)(1 + line * 7 % 1'000'003); };
    for (uint64_t first : {uint64_t{0}, uint64_t{1}, kept - 1, kept, kept + 1, units - kept}) {
        CAPTURE(first);
        Map map;
        const auto is_kept = [&](uint64_t unit) { return unit >= first && unit < first + kept; };
        for (uint64_t line = 0; line < LINES; line++)
            *line_map_entry(&map, line) = place(line);
        REQUIRE(map.used == GROUPS);
        for (uint64_t unit = 0; unit < units; unit++)
            if (!is_kept(unit)) {
                CHECK(map.known == GROUPS);
                line_map_leave(&map, unit * UNIT, UNIT);
                line_map_trim(&map);
            }
        CHECK(map.used == kept * UNIT / GROUP);
        CHECK(map.known == map.used);
        CHECK(map.resident(map.blocks, GROUPS * sizeof *map.blocks) == map.known * sizeof *map.blocks);
        for (uint64_t line = 0; line < LINES; line++)
            REQUIRE(line_map_at(&map, line) == (is_kept(line / UNIT) ? place(line) : 0));
        for (uint64_t line = 0; line < LINES; line += GROUP) // all blocks can be had again
            *line_map_entry(&map, line) = place(line);
        CHECK(map.used == GROUPS);
        CHECK(map.known == GROUPS);
        for (uint64_t line = first * UNIT; line < (first + kept) * UNIT; line++)
            REQUIRE(line_map_at(&map, line) == place(line));
    }
}
