// Declared pointers stay declared, whatever number they hold and wherever their object moves. The next program may
// store a pointer there without telling anybody.
#include "common/compiled.hpp"
#include "common/fixture.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

extern "C" char *pm__fgets(char *, int, FILE *);
extern "C" size_t pm__mbstowcs(wchar_t *, const char *, size_t);

namespace
{

constexpr uint64_t WORDS = 8, NUMBER = 17;

struct Fixture {
    test::Directory directory;
    test::Container c;
    void **words =
        nullptr; // all declared; the odd ones hold numbers, the even ones lead to the object

    explicit Fixture(pm_engine engine = GENERATE(PM_ENGINE_REDO, PM_ENGINE_LOG))
    {
        pm_options o = test::small(PM_CREATE | PM_MOVABLE | PM_ANNOUNCED);
        o.engine = engine;
        o.tracker = PM_TRACKER_STORES;
        c = test::open(directory / "c.pm", o);
        std::vector<void *> before; // gives its slab to a compaction
        do {
            words = static_cast<void **>(pm_malloc(c.get(), WORDS * sizeof *words));
            REQUIRE(words);
            before.push_back(words);
        } while (uintptr_t(words) - uintptr_t(before[0]) < o.segment_size);
        before.pop_back();
        REQUIRE_OK(pm_mark_pointers(words, WORDS));
        REQUIRE_OK(pm_dirty(words, WORDS * sizeof *words));
        for (uint64_t i = 0; i < WORDS; i++)
            words[i] = i % 2 ? number(i) : words;
        REQUIRE_OK(pm_setroot(c.get(), words, 0));
        REQUIRE_OK(pm_commit(c.get()));
        for (uint64_t i = 1; i < before.size(); i++)
            REQUIRE_OK(pm_free(before[i]));
        REQUIRE_OK(pm_commit(c.get()));
    }
    static void *number(uint64_t i) { return reinterpret_cast<void *>(NUMBER + i); }

    void are_declared()
    {
        words = static_cast<void **>(pm_getroot(c.get()));
        for (uint64_t i = 0; i < WORDS; i++) {
            CAPTURE(i);
            REQUIRE(pm_next_pointer(words + i, words + i + 1) == words + i);
        }
        REQUIRE_OK(pm_check(c.get()));
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "declared words that hold numbers stay declared")
{
    SECTION("in a compaction")
    {
        pm_compacted done{};
        done.size = sizeof done;
        REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, &done));
        REQUIRE(done.objects_moved > 0);
        REQUIRE(pm_getroot(c.get()) != words);
    }
    SECTION("in pm_realloc()")
    {
        REQUIRE(pm_realloc(words, 5000) != words);
    }
    SECTION("in pm_realloc() to a page and more")
    {
        REQUIRE(pm_realloc(words, 50000) != words);
    }
    SECTION("in pm_realloc() of what has been stored to, and again")
    {
        REQUIRE_OK(pm_dirty(words, WORDS * sizeof *words));
        words[1] = number(100);
        words = static_cast<void **>(pm_realloc(words, 5000));
        REQUIRE(pm_realloc(words, 50000));
    }
    SECTION("in pm_realloc(), and compiled code stores another number as a pointer")
    {
        words = static_cast<void **>(pm_realloc(words, 5000));
        compiled::put(words[1], number(100));
    }
    REQUIRE_OK(pm_commit(c.get()));
    are_declared();
}

TEST_CASE_METHOD(Fixture, "a number that compiled code stores as data undeclares the word")
{
    compiled::put(*reinterpret_cast<uint64_t *>(words + 1), 100);
    SECTION("where it is") {}
    SECTION("and in pm_realloc()")
    {
        words = static_cast<void **>(pm_realloc(words, 5000));
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(words + 1, words + 2) == nullptr);
}

TEST_CASE_METHOD(Fixture, "a number in a word that nobody declared stays undeclared")
{
    REQUIRE_OK(pm_mark_data(words + 1, sizeof *words));
    REQUIRE_OK(pm_commit(c.get()));
    compiled::put(words[1], number(100));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(words + 1, words + 2) == nullptr);
}

TEST_CASE_METHOD(Fixture, "data over a large object, its first and last words too")
{
    const size_t beyond = GENERATE(8, 7232, 32760, 32768, 40000), skip = GENERATE(0, 8, 32760);
    const size_t count = ((1 << 20) + 32768 + beyond) / sizeof(void *);
    auto **p = static_cast<void **>(pm_malloc(c.get(), count * sizeof(void *) + skip));
    REQUIRE(p);
    p += skip / sizeof *p;
    for (size_t i : {size_t{0}, size_t{1}, count / 2, count - 2, count - 1})
        compiled::put(p[i], words);
    if (skip > 0) /* a pointer beside the data stays one */
        compiled::put(p[-1], words);
    pm__mark_data(p, count * sizeof *p);
    for (size_t i = 0; i < count; i++) // numbers, as compiled code says
        p[i] = words;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(p, p + count) == nullptr);
    REQUIRE((skip == 0 || pm_next_pointer(p - 1, p) == p - 1));
}

TEST_CASE_METHOD(Fixture, "a reservation that fails leaves no maps behind for pointers that may come")
{
    REQUIRE(pm_malloc(c.get(), 8 << 20)); // in groups of segments that have no map
    REQUIRE_OK(pm_commit(c.get()));
    const struct pm_stats before = test::stats(c.get());
    REQUIRE(pm_reserve(c.get(), SIZE_MAX / 2) == -1);
    REQUIRE(test::failed_with(ENOSPC, {"no space to reserve log"}));
    const struct pm_stats after = test::stats(c.get());
    REQUIRE(after.segments_map == before.segments_map);
    REQUIRE(after.segments_free == before.segments_free);
    REQUIRE(after.file_bytes == before.file_bytes);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "a line with a null character that fills the room of fgets(3)")
{
    constexpr size_t ROOM = 64;
    auto **p = static_cast<void **>(pm_calloc(c.get(), ROOM, 1));
    compiled::put(p[3], words);
    char text[ROOM] = "abc";
    memcpy(text + 3 * sizeof *p, &words, sizeof words);
    FILE *file = fmemopen(text, ROOM, "r");
    REQUIRE(pm__fgets(reinterpret_cast<char *>(p), ROOM, file));
    fclose(file);
    REQUIRE(p[3] == words);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(p, p + ROOM / sizeof *p) == nullptr);
}

TEST_CASE_METHOD(Fixture, "a text that fills its room, and has no end there, spares the pointer behind it")
{
    struct Name {
        wchar_t text[2];
        void *pointer;
    };
    auto *p = static_cast<Name *>(pm_calloc(c.get(), 1, sizeof(Name)));
    REQUIRE(p);
    REQUIRE_OK(pm_commit(c.get()));
    compiled::put(p->pointer, words);
    REQUIRE(pm__mbstowcs(p->text, "ab", 2) == 2);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(&p->pointer, &p->pointer + 1) == &p->pointer);
}
