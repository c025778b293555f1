// Containers that open at other addresses than they were made for, and are moved there on the medium.
#include "base/marks.h"
#include "common/fixture.hpp"
#include "common/format.hpp"
#include "unit/linked.hpp"
#include "unit/mapped.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <random>
#include <vector>

using test::base_of;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm", copy = directory / "copy.pm";

    static pm_options movable(unsigned flags = PM_RELOCATE)
    {
        return test::small(flags | PM_MOVABLE);
    }

    Fixture()
    {
        linked::recorded = test::stores();
        test::Container c = test::open(path, movable(PM_CREATE));
        linked::build(c.get(), 1000);
        REQUIRE(pm_commit(c.get()) == 0);
        c.reset();
        std::filesystem::copy_file(path, copy);
    }

    uint64_t map_segment() const
    {
        uint64_t segment = 0;
        while (segment_kind(test::read_word(copy, FORMAT_TABLE + 8 * segment)) != SEGMENT_MAP)
            segment++;
        return segment;
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "a copy is open beside its original, and both are written")
{
    test::Container a = test::open(path, movable()), b = test::open(copy, movable());
    REQUIRE(base_of(a.get()) != base_of(b.get()));
    REQUIRE(test::stats(a.get()).pointers_moved == 0);
    uint64_t moved = test::stats(b.get()).pointers_moved;
    REQUIRE(moved > 3000);
    for (pm_container *c : {a.get(), b.get()}) {
        linked::require(c, 1000);
        linked::push(c);
        REQUIRE(pm_commit(c) == 0);
        linked::require(c, 1001);
        REQUIRE(pm_check(c) == 0);
    }
    // The new addresses are the copy's own from now on, wherever the original is.
    const char *where = base_of(b.get());
    b.reset();
    b = test::open(copy, movable());
    REQUIRE(base_of(b.get()) == where);
    REQUIRE(test::stats(b.get()).pointers_moved == 0);
    linked::require(b.get(), 1001);
}

TEST_CASE_METHOD(Fixture, "what is no mapped pointer stays as it is")
{
    {
        pm_options how = movable();
        how.foreign_pointers = PM_FOREIGN_IGNORE;
        test::Container a = test::open(path, how);
        auto *words = static_cast<uint64_t *>(pm_calloc(a.get(), 6, 8));
        uint64_t at = (uintptr_t)base_of(a.get()), size = 64 << 20;
        uint64_t values[] = {(uintptr_t)words, // an integer, unmapped
                             at,               // no object is there
                             at + 1,
                             at + size,
                             at + size + 1,
                             at - 1};
        memcpy(words, values, sizeof values);
        REQUIRE(pm_mark_data(words, 8) == 0); // pmcc cannot know what was made of a pointer
        REQUIRE(pm_mark_pointers(words + 1, 5) == 0);
        REQUIRE(pm_setroot(a.get(), words, 0) == 0);
        REQUIRE(pm_commit(a.get()) == 0);
    }
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    test::Container a = test::open(path, movable()), b = test::open(copy, movable());
    uint64_t from = (uintptr_t)base_of(a.get()), to = (uintptr_t)base_of(b.get()), size = 64 << 20;
    auto *was = static_cast<uint64_t *>(pm_getroot(a.get()));
    auto *is = static_cast<uint64_t *>(pm_getroot(b.get()));
    REQUIRE(is[0] == was[0]);
    REQUIRE(is[1] == from);
    REQUIRE(is[2] == to + 1);
    REQUIRE(is[3] == to + size);
    REQUIRE(is[4] == from + size + 1);
    REQUIRE(is[5] == from - 1);
}

TEST_CASE_METHOD(Fixture, "pointers in all words of objects, of all sizes, beside free slots")
{
    constexpr size_t SIZES[] = {48, 104, 312, 456, 1000, 3000}, EACH = 60;
    constexpr size_t COUNT = std::size(SIZES) * EACH;
    const std::string wide = directory / "wide.pm", other = directory / "other.pm";
    auto size_of = [&](size_t i) { return SIZES[i % std::size(SIZES)]; };
    {
        test::Container c = test::open(wide, movable(PM_CREATE));
        auto **table = static_cast<void ***>(pm_calloc(c.get(), COUNT, sizeof(void *)));
        REQUIRE(table);
        REQUIRE_OK(pm_mark_pointers(table, COUNT));
        REQUIRE_OK(pm_setroot(c.get(), table, 0));
        std::minstd_rand random(1);
        std::vector<void *> freed;
        for (size_t i = 0; i < COUNT; i++) {
            auto **object = static_cast<void **>(pm_malloc(c.get(), size_of(i)));
            REQUIRE(object);
            REQUIRE_OK(pm_mark_pointers(object, size_of(i) / sizeof(void *)));
            std::fill_n(object, size_of(i) / sizeof(void *), object);
            if (random() % 2)
                table[i] = object;
            else
                freed.push_back(object);
        }
        for (void *object : freed)
            REQUIRE_OK(pm_free(object));
        REQUIRE_OK(pm_commit(c.get()));
    }
    std::filesystem::copy_file(wide, other);
    test::Container a = test::open(wide, movable()), b = test::open(other, movable());
    REQUIRE(base_of(a.get()) != base_of(b.get()));
    auto **table = static_cast<void ***>(pm_getroot(b.get()));
    for (size_t i = 0; i < COUNT; i++)
        for (size_t word = 0; table[i] && word < size_of(i) / sizeof(void *); word++)
            if (table[i][word] != table[i])
                FAIL("word " << word << " of object " << i << " of " << size_of(i) << " bytes");
}

TEST_CASE_METHOD(Fixture, "two pointers that are side by side, at each place of a word of the map")
{
    // An object is so large that its pair has a word of the map to itself.
    constexpr size_t WORDS = 128, COUNT = WORDS - 1;
    const std::string pairs = directory / "pairs.pm", other = directory / "other.pm";
    {
        test::Container c = test::open(pairs, movable(PM_CREATE));
        auto **table = static_cast<void ***>(pm_calloc(c.get(), COUNT, sizeof(void *)));
        REQUIRE(table);
        REQUIRE_OK(pm_mark_pointers(table, COUNT));
        REQUIRE_OK(pm_setroot(c.get(), table, 0));
        for (size_t i = 0; i < COUNT; i++) {
            table[i] = static_cast<void **>(pm_calloc(c.get(), WORDS, sizeof(void *)));
            REQUIRE(table[i]);
            REQUIRE_OK(pm_mark_pointers(table[i] + i, 2));
            table[i][i] = table[i][i + 1] = table[i];
        }
        REQUIRE_OK(pm_commit(c.get()));
    }
    std::filesystem::copy_file(pairs, other);
    test::Container a = test::open(pairs, movable()), b = test::open(other, movable());
    REQUIRE(base_of(a.get()) != base_of(b.get()));
    b.reset(); // what it has on the medium counts
    b = test::open(other, movable());
    auto **table = static_cast<void ***>(pm_getroot(b.get()));
    for (size_t i = 0; i < COUNT; i++)
        for (size_t word = i; word < i + 2; word++)
            if (table[i][word] != table[i])
                FAIL("word " << word << " of object " << i);
}

TEST_CASE_METHOD(Fixture, "a reader elsewhere changes nothing on the medium")
{
    std::string before = test::read_file(copy);
    {
        test::Container a = test::open(path, movable()), b = test::open(copy, movable(PM_READONLY));
        REQUIRE(base_of(a.get()) != base_of(b.get()));
        linked::require(b.get(), 1000);
        REQUIRE(pm_check(b.get()) == 0);
    }
    REQUIRE(test::read_file(copy) == before);
}

TEST_CASE_METHOD(Fixture, "only a container that every writer vouched for is moved")
{
    {
        // A reader vouches for nothing, and need not.
        test::Container b = test::open(copy, test::small(PM_READONLY));
    }
    {
        test::Container a = test::open(path, movable()), b = test::open(copy, movable());
    }
    {
        test::Container b = test::open(copy, test::small());
        linked::require(b.get(), 1000);
    }
    // Which one who vouches again cannot undo.
    std::string third = directory / "third.pm";
    {
        test::Container b = test::open(copy, movable());
    }
    std::filesystem::copy_file(copy, third);
    test::Container b = test::open(copy, movable());
    pm_options how = movable();
    REQUIRE(pm_open(third.c_str(), &how) == nullptr);
    REQUIRE(errno == EADDRINUSE);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("PM_MOVABLE"));
    b.reset();
    linked::require(test::open(third, how).get(), 1000);
}

TEST_CASE_METHOD(Fixture, "a mapped word where no objects are is left alone", "[home]")
{
    constexpr uint64_t UNUSED = 40000; // behind the segment table
    uint64_t end = std::filesystem::file_size(copy);
    uint64_t pointer =
        100 + seal_payload(test::read_word(copy, FORMAT_STATE + offsetof(format_state, base)));
    test::patch_file(copy, UNUSED, &pointer, sizeof pointer);
    for (uint64_t at : {UNUSED, end, end + (64 << 10) - 8}) {
        uint64_t offset = (map_segment() << 16) + at / MAP_WORD_BYTES * 8;
        uint64_t bits = seal_payload(test::read_word(copy, offset));
        test::forge_word(copy, offset, seal(bits | UINT64_C(1) << at / 8 % SEAL_BITS));
    }
    test::Container a = test::open(path, movable()), b = test::open(copy, movable());
    REQUIRE(base_of(a.get()) != base_of(b.get()));
    REQUIRE(test::read_word(copy, UNUSED) == pointer);
    linked::require(b.get(), 1000);
    REQUIRE(pm_check(b.get()) == -1);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("where there is no object"));
}

TEST_CASE_METHOD(Fixture, "a damaged pointer map stops a move before it begins", "[home]")
{
    test::flip_bit(copy, (map_segment() << 16) + GENERATE(0, 65535), 5);
    test::Container a = test::open(path, movable());
    std::string before = test::read_file(copy);
    pm_options how = movable();
    REQUIRE(pm_open(copy.c_str(), &how) == nullptr);
    REQUIRE(errno == EBADMSG);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("pointer map is damaged"));
    a.reset();
    linked::require(test::open(copy, movable()).get(), 1000); // at its own addresses
}

TEST_CASE_METHOD(Fixture, "a pointer map that has lost a sector stops a move before it begins", "[home]")
{
    constexpr size_t SECTOR = 512;
    const uint64_t map = map_segment() << 16;
    const std::string file = test::read_file(copy), zeros(SECTOR, '\0');
    uint64_t lost = map;
    while (file.compare(lost, SECTOR, zeros) == 0)
        lost += SECTOR;
    test::patch_file(copy, lost, zeros.data(), SECTOR);
    const std::string before = test::read_file(copy).substr(FORMAT_TABLE); // without the state page
    test::Container a = test::open(path, movable());
    pm_options how = movable(GENERATE((unsigned)PM_RELOCATE, 0u));
    if (!(how.flags & PM_RELOCATE))
        how.flags = 0; // who does not vouch has it moved, too
    REQUIRE(pm_open(copy.c_str(), &how) == nullptr);
    REQUIRE(test::failed_with(EBADMSG, {copy.c_str(), "pointer map", "backup"}));
    const bool same = test::read_file(copy).substr(FORMAT_TABLE) == before;
    REQUIRE(same);
}

TEST_CASE_METHOD(Fixture, "damaged addresses are reported")
{
    uint64_t word =
        FORMAT_STATE + GENERATE(offsetof(format_state, base), offsetof(format_state, target),
                                offsetof(format_state, movable));
    SECTION("by a flipped bit")
    {
        test::flip_bit(copy, word + GENERATE(0, 3, 7), 1);
    }
    SECTION("outside of the arena, and not on a slot")
    {
        word = FORMAT_STATE + offsetof(format_state, base);
        uint64_t wrong = seal(GENERATE(uint64_t{0}, ARENA_HINT - (1 << 30), ARENA_HINT + 4096,
                                       ARENA_HINT + ARENA_SIZE - (1 << 20)));
        test::patch_file(copy, word, &wrong, sizeof wrong);
    }
    REQUIRE(pm_open(copy.c_str(), nullptr) == nullptr);
    REQUIRE(errno == EBADMSG);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("addresses"));
}

TEST_CASE_METHOD(Fixture, "a move under way to addresses that overlap the old ones is damage")
{
    pm_options how = movable(PM_CREATE);
    how.max_size = UINT64_C(3) << 30; // of slots of 1 GiB
    const std::string large = directory / "large.pm";
    const auto base = (uint64_t)base_of(test::open(large, how).get());
    const int64_t slots = GENERATE(-3, -2, -1, 0, 1, 2, 3);
    CAPTURE(slots);
    const uint64_t there = base + (uint64_t)slots * (UINT64_C(1) << 30);
    if (there < ARENA_HINT || there + how.max_size > VOLATILE_BASE)
        return; // the container is at the arena's end, by chance
    uint64_t target = seal(there);
    test::patch_file(large, FORMAT_STATE + offsetof(format_state, target), &target, sizeof target);
    how.flags = PM_MOVABLE;
    test::Container c(pm_open(large.c_str(), &how));
    REQUIRE((c != nullptr) == (slots % 3 == 0)); // 0: done, and not yet noted to be
    if (!c) {
        REQUIRE(errno == EBADMSG);
        REQUIRE_THAT(pm_errormsg(), Catch::Contains("addresses"));
    }
}
