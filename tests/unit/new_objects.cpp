// The lines of a new object are marked together when the object is given out (T3, pages/tracker.h). Whatever
// becomes of the object, the container has what the program has stored, and no more is written.
#include "common/fixture.hpp"
#include "unit/page_state.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace
{

constexpr size_t LINE = 64, PAGE = 4096, KIB = 1024;

bool logs()
{
    return test::engine() == "log";
}

char *allocate(pm_container *c, size_t size)
{
    auto *p = static_cast<char *>(pm_malloc(c, size));
    REQUIRE(p);
    return p;
}

// A container whose root is an array of pointers.
struct Subject {
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c;
    char **root = nullptr;

    explicit Subject(unsigned flags = 0) { open(flags | PM_CREATE); }
    void open(unsigned flags = 0)
    {
        pm_options how = test::options(flags); // in segments of 1 MiB
        how.max_size = 256 << 20;
        c.reset();
        c = test::open(path, how);
        root = static_cast<char **>(pm_getroot(c.get()));
        if (root)
            return;
        root = static_cast<char **>(pm_calloc(c.get(), 16, sizeof *root));
        REQUIRE_OK(pm_setroot(c.get(), root, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }

    // Free memory on open pages, where the next object of this size will be, and which has `fill` in it.
    char *make_room(size_t size, char fill)
    {
        char *p = allocate(c.get(), size);
        memset(p, fill, size);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_free(p));
        REQUIRE_OK(pm_commit(c.get()));
        return p;
    }

    // An object there, whose lines are marked together.
    char *replace(size_t size, char fill)
    {
        char *there = make_room(size, fill), *p = allocate(c.get(), size);
        REQUIRE(p == there);
        REQUIRE(lines_of_objects(c.get()) > 0);
        return p;
    }
};

std::string bytes(const char *p, size_t size)
{
    return std::string(p, size);
}

} // namespace

TEST_CASE("objects of a size between two limits have their lines marked together")
{
    Subject s;
    const size_t least = 256, most = logs() ? 16 * PAGE : PAGE;
    struct {
        size_t size;
        bool together;
    } const sizes[] = {
        {least - 1, false},       {least, true},    {least + 1, false}, // not in whole lines
        {least + LINE - 1, true}, {most - 1, true}, {most, true},       {most + 1, false}};
    for (const auto &[size, together] : sizes) {
        CAPTURE(size);
        s.make_room(size, 'a');
        s.root[0] = allocate(s.c.get(), size);
        CHECK((lines_of_objects(s.c.get()) > 0) == together);
        memset(s.root[0], 'b', size);
        REQUIRE_OK(pm_commit(s.c.get()));
        CHECK(lines_of_objects(s.c.get()) == 0);
        s.open();
        CHECK(bytes(s.root[0], size) == std::string(size, 'b'));
    }
    REQUIRE_OK(pm_check(s.c.get()));
}

TEST_CASE("objects that share lines with their neighbours, and objects that do not")
{
    // Slots of 288 bytes lie at all multiples of 32 in a line.
    const size_t SIZE = GENERATE(256u, 288u);
    constexpr size_t OBJECTS = 16;
    Subject s;
    std::vector<char *> objects;
    for (size_t i = 0; i < OBJECTS; i++) {
        objects.push_back(allocate(s.c.get(), SIZE));
        memset(objects[i], 'a', SIZE);
    }
    REQUIRE_OK(pm_commit(s.c.get()));
    for (size_t i = 1; i + 1 < OBJECTS; i += 2)
        REQUIRE_OK(pm_free(objects[i]));
    REQUIRE_OK(pm_commit(s.c.get()));
    for (size_t i = 1; i + 1 < OBJECTS; i += 2) {
        const uint64_t before = lines_of_objects(s.c.get());
        char *p = allocate(s.c.get(), SIZE);
        REQUIRE(p == objects[i]);
        CHECK(lines_of_objects(s.c.get()) - before == (SIZE % LINE ? 0 : SIZE / LINE));
        memset(p, 'b', SIZE);
    }
    for (size_t i = 0; i < OBJECTS; i += 2) // the neighbours' first and last bytes
        objects[i][0] = objects[i][SIZE - 1] = 'c';
    memcpy(s.root, objects.data(), OBJECTS * sizeof(char *));
    bool keep = GENERATE(true, false);
    if (keep)
        REQUIRE_OK(pm_commit(s.c.get()));
    else
        REQUIRE_OK(pm_rollback(s.c.get()));
    if (keep)
        s.open();
    for (size_t i = 0; i < OBJECTS; i++) {
        CAPTURE(i);
        std::string expected(SIZE, keep && i % 2 && i + 1 < OBJECTS ? 'b' : 'a');
        if (keep && i % 2 == 0)
            expected.front() = expected.back() = 'c';
        CHECK(bytes(objects[i], SIZE) == expected);
    }
    REQUIRE_OK(pm_check(s.c.get()));
}

TEST_CASE("the end of a slot, behind the bytes that were asked for, is marked when it is stored to")
{
    constexpr size_t SIZE = 1030; // in a slot of 1152
    Subject s;
    char *p = s.replace(SIZE, 'a');
    REQUIRE(pm_usable_size(p) == 1152);
    CHECK(lines_of_objects(s.c.get()) == 17);
    memset(p, 'b', 1152);
    s.root[0] = p;
    REQUIRE_OK(pm_commit(s.c.get()));
    s.open();
    CHECK(bytes(p, 1152) == std::string(1152, 'b'));
}

TEST_CASE("of a new object the lines are written to which the program has stored")
{
    constexpr size_t SIZE = KIB;
    const size_t stored = GENERATE(0u, 1u, 5u, KIB / LINE - 1, KIB / LINE);
    CAPTURE(stored);
    Subject s;
    char *p = s.replace(SIZE, 'a');
    const uint64_t words = LINE; // the slab's bitmap
    for (size_t i = 0; i < stored; i++)
        p[i * LINE + 7] = 'b';
    const uint64_t bytes_written = test::written_by_commit(s.c.get());
    // R7: whether it differs or not. Under the log engine because an object was there before (L14).
    CHECK(bytes_written == SIZE + (logs() ? words : 0));
    s.open();
    std::string expected(SIZE, 'a');
    for (size_t i = 0; i < stored; i++)
        expected[i * LINE + 7] = 'b';
    CHECK(bytes(p, SIZE) == expected);
}

TEST_CASE("of an object where none ever was, the lines are written to which the program has stored")
{
    const size_t stored = GENERATE(0u, 1u, 15u);
    Subject s;
    for (size_t i = 0; i < 2; i++) // the first one makes the slab
        s.root[i] = allocate(s.c.get(), KIB);
    REQUIRE_OK(pm_commit(s.c.get()));
    s.root[2] = allocate(s.c.get(), KIB);
    for (size_t i = 0; i < stored; i++)
        s.root[2][i * LINE + 7] = 'b';
    const uint64_t all = test::written_by_commit(s.c.get());
    CHECK(all <= (3 + stored) * LINE);
    REQUIRE_OK(pm_check(s.c.get()));
}

TEST_CASE("a new object that is freed in the same transaction leaves nothing")
{
    constexpr size_t SIZE = KIB;
    Subject s;
    char *p = s.replace(SIZE, 'a');
    memset(p, 'b', SIZE);
    REQUIRE_OK(pm_free(p));
    SECTION("and nobody takes its place")
    {
        CHECK(test::written_by_commit(s.c.get()) == 0);
        CHECK(bytes(p, SIZE) ==
              std::string(SIZE, 'a')); // or an audit would take it for a missed store
    }
    SECTION("and a smaller one takes its place")
    {
        REQUIRE(allocate(s.c.get(), SIZE - 60) == p);
        CHECK(lines_of_objects(s.c.get()) == SIZE / LINE); // those of the first
        memset(p, 'c', SIZE - 60);
        s.root[0] = p;
        REQUIRE_OK(pm_commit(s.c.get()));
        s.open();
        CHECK(bytes(p, SIZE - 60) == std::string(SIZE - 60, 'c'));
    }
    SECTION("and another object of the transaction stays")
    {
        char *other = allocate(s.c.get(), 2 * SIZE);
        memset(other, 'd', 2 * SIZE);
        s.root[0] = other;
        CHECK(test::written_by_commit(s.c.get()) < 4 * SIZE);
        s.open();
        CHECK(bytes(s.root[0], 2 * SIZE) == std::string(2 * SIZE, 'd'));
        if (!logs()) // there it is nobody's, and zero now
            CHECK(bytes(p, SIZE) == std::string(SIZE, 'a'));
    }
    REQUIRE_OK(pm_check(s.c.get()));
}

TEST_CASE("a new object replaces one that is freed in the same transaction")
{
    constexpr size_t SIZE = KIB;
    Subject s;
    s.root[0] = s.replace(SIZE, 'a');
    memset(s.root[0], 'b', SIZE);
    REQUIRE_OK(pm_commit(s.c.get()));
    for (char fill = 'c'; fill < 'z'; fill++) {
        char *p = allocate(s.c.get(), SIZE);
        memset(p, fill, SIZE);
        REQUIRE_OK(pm_free(s.root[0]));
        s.root[0] = p;
        REQUIRE_OK(pm_commit(s.c.get()));
    }
    s.open();
    CHECK(bytes(s.root[0], SIZE) == std::string(SIZE, 'y'));
    REQUIRE_OK(pm_check(s.c.get()));
}

TEST_CASE("a rollback restores the memory of new objects")
{
    const size_t size = GENERATE(256u, 310u, 1024u, 4096u);
    CAPTURE(size);
    Subject s;
    char *p = s.replace(size, 'a');
    memset(p, 'b', size);
    REQUIRE_OK(pm_rollback(s.c.get()));
    CHECK(lines_of_objects(s.c.get()) == 0);
    CHECK(bytes(p, size) == std::string(size, 'a'));
    REQUIRE(allocate(s.c.get(), size) == p);
    p[size / 2] = 'c';
    s.root[0] = p;
    REQUIRE_OK(pm_commit(s.c.get()));
    s.open();
    std::string expected(size, 'a');
    expected[size / 2] = 'c';
    CHECK(bytes(p, size) == expected);
}

TEST_CASE("after a commit a store to the object needs a mark again")
{
    constexpr size_t SIZE = KIB;
    Subject s;
    s.root[0] = s.replace(SIZE, 'a');
    memset(s.root[0], 'b', SIZE);
    REQUIRE_OK(pm_commit(s.c.get()));
    s.root[0][500] = 'c';
    REQUIRE_OK(pm_commit(s.c.get()));
    s.open();
    std::string expected(SIZE, 'b');
    expected[500] = 'c';
    CHECK(bytes(s.root[0], SIZE) == expected);
}

// Objects that reach into the next page, and stores to whole pages, which list pages.
TEST_CASE("lines of listed pages are written once")
{
    constexpr size_t SIZE = PAGE;
    Subject s;
    char *p = s.replace(SIZE, 'a');
    REQUIRE((uintptr_t)p % PAGE == 0);
    const bool announced = GENERATE(false, true);
    if (announced)
        REQUIRE_OK(pm_dirty(p, SIZE));
    memset(p, 'b', SIZE);
    s.root[0] = p;
    CHECK(test::written_by_commit(s.c.get()) <= SIZE + 3 * LINE);
    s.open();
    CHECK(bytes(p, SIZE) == std::string(SIZE, 'b'));
}

TEST_CASE("an object on a listed page, and an object on a closed page, have no run")
{
    constexpr size_t SIZE = KIB;
    Subject s;
    char *p = s.make_room(SIZE, 'a');
    const bool listed = GENERATE(false, true);
    if (listed)
        REQUIRE_OK(pm_dirty((void *)((uintptr_t)p / PAGE * PAGE), PAGE));
    else
        s.open();
    REQUIRE(allocate(s.c.get(), SIZE) == p);
    CHECK(lines_of_objects(s.c.get()) == 0);
    memset(p, 'b', SIZE);
    s.root[0] = p;
    REQUIRE_OK(pm_commit(s.c.get()));
    s.open();
    CHECK(bytes(p, SIZE) == std::string(SIZE, 'b'));
}

TEST_CASE("when there are too many new objects, the lines of the others are marked one by one")
{
    constexpr size_t SIZE = 256, OBJECTS = 1 << 16;
    Subject s;
    for (int round = 0; round < 2; round++) { // the pages are open the second time
        std::vector<char *> objects;
        for (size_t i = 0; i < OBJECTS + 5000; i++) { // a few are on closed pages
            objects.push_back(allocate(s.c.get(), SIZE));
            memset(objects[i], 'a' + round, SIZE);
        }
        if (round == 1) {
            CHECK(lines_of_objects(s.c.get()) == OBJECTS * SIZE / LINE);
            s.root[0] = objects.front();
            s.root[1] = objects.back();
        }
        REQUIRE_OK(pm_commit(s.c.get()));
        for (size_t i = 0; i < objects.size() && round == 0; i++)
            REQUIRE_OK(pm_free(objects[i]));
        REQUIRE_OK(pm_commit(s.c.get()));
    }
    s.open();
    CHECK(bytes(s.root[0], SIZE) == std::string(SIZE, 'b'));
    CHECK(bytes(s.root[1], SIZE) == std::string(SIZE, 'b'));
    REQUIRE_OK(pm_check(s.c.get()));
}

TEST_CASE("pointers in a new object are in the map of pointers")
{
    constexpr size_t SIZE = KIB, WORDS = SIZE / sizeof(void *);
    Subject s(PM_MOVABLE);
    char *p = s.replace(SIZE, 0);
    auto *words = reinterpret_cast<void *volatile *>(p);
    auto *numbers = reinterpret_cast<volatile uint64_t *>(p);
    const size_t at = GENERATE(0u, 1u, 7u, 8u, 63u, 64u, 127u);
    CAPTURE(at);
    for (size_t i = 0; i < WORDS; i++)
        numbers[i] = i + 1;
    words[at] = p;
    s.root[0] = p;
    REQUIRE_OK(pm_commit(s.c.get()));
    void **found = pm_next_pointer(p, p + SIZE);
    REQUIRE(found == (void **)p + at);
    CHECK_FALSE(pm_next_pointer(found + 1, p + SIZE));
    // A new object in the same place, without pointers.
    s.root[0] = nullptr;
    REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(s.c.get()));
    REQUIRE(allocate(s.c.get(), SIZE) == p);
    memset(p, 1, SIZE);
    REQUIRE_OK(pm_commit(s.c.get()));
    CHECK_FALSE(pm_next_pointer(p, p + SIZE));
    // Kinds were forgotten with the marks.
    p[0] = 2;
    REQUIRE_OK(pm_commit(s.c.get()));
    CHECK_FALSE(pm_next_pointer(p, p + SIZE));
}

TEST_CASE("pm_realloc and pm_mark_pointers know the lines of new objects")
{
    constexpr size_t SIZE = KIB;
    const bool moves = GENERATE(false, true);
    Subject s(PM_MOVABLE);
    auto *p = reinterpret_cast<void **>(s.replace(SIZE, 0));
    memset(p, 0, SIZE);
    p[3] = s.root;
    REQUIRE_OK(pm_mark_pointers(&p[5], 1));
    REQUIRE_OK(pm_mark_pointers(&p[64], 1)); // nothing else on its line is a pointer
    reinterpret_cast<volatile uint64_t *>(p)[64] = 7;
    if (!moves) {
        s.root[0] = reinterpret_cast<char *>(p);
        REQUIRE_OK(pm_commit(s.c.get()));
        CHECK(pm_next_pointer(p + 4, p + SIZE / 8) == p + 5);
        CHECK_FALSE(pm_next_pointer(p + 6, p + SIZE / 8));
        return;
    }
    auto *q = static_cast<void **>(pm_realloc(p, 3 * SIZE));
    REQUIRE(q);
    s.root[0] = reinterpret_cast<char *>(q);
    REQUIRE_OK(pm_commit(s.c.get()));
    CHECK(pm_next_pointer(q, q + SIZE / 8) == q + 3);
    CHECK(pm_next_pointer(q + 4, q + SIZE / 8) == q + 5);
    CHECK_FALSE(pm_next_pointer(q + 6, q + SIZE / 8));
    s.open(PM_MOVABLE);
    CHECK(((void **)s.root[0])[3] == (void *)s.root);
    REQUIRE_OK(pm_check(s.c.get()));
}

TEST_CASE("a line of a freed object has no kinds left when another object is there")
{
    constexpr size_t SIZE = KIB;
    Subject s(PM_MOVABLE);
    char *p = s.replace(SIZE, 0);
    reinterpret_cast<void *volatile *>(p)[3] = p;
    REQUIRE_OK(pm_commit(s.c.get()));
    REQUIRE(pm_next_pointer(p, p + SIZE));
    REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(s.c.get()));
    REQUIRE(allocate(s.c.get(), SIZE) == p);
    p[0] = 1;
    REQUIRE_OK(pm_commit(s.c.get()));
    CHECK_FALSE(pm_next_pointer(p, p + SIZE));
}

TEST_CASE("pm_reserve counts the lines of new objects")
{
    constexpr size_t SIZE = KIB, OBJECTS = 4096; // 4 MiB, and chunks have one
    Subject s;
    for (int round = 0; round < 2; round++) {
        std::vector<char *> objects;
        for (size_t i = 0; i < OBJECTS; i++) {
            objects.push_back(allocate(s.c.get(), SIZE));
            if (round == 0)
                objects[i][0] = 'a'; // opens the page
        }
        if (round == 1) {
            CHECK(lines_of_objects(s.c.get()) > OBJECTS * SIZE / LINE / 2);
            REQUIRE_OK(pm_reserve(s.c.get(), PAGE));
            for (char *p : objects)
                memset(p, 'b', SIZE);
        }
        const auto length = std::filesystem::file_size(s.path);
        REQUIRE_OK(pm_commit(s.c.get()));
        if (round == 1)
            CHECK(std::filesystem::file_size(s.path) == length);
        for (size_t i = 0; i < OBJECTS; i++)
            if (i % 100 != 0) // no slab is given back
                REQUIRE_OK(pm_free(objects[i]));
        REQUIRE_OK(pm_commit(s.c.get()));
    }
}

// So many marks are sorted, and a page with many of them is listed.
TEST_CASE("a commit that lists a page takes the lines of its new objects once")
{
    constexpr size_t MARKS = 1 << 16, SIZE = 512, OBJECTS = PAGE / SIZE;
    Subject s;
    auto *many = static_cast<volatile char *>(pm_malloc(s.c.get(), MARKS * LINE));
    REQUIRE(many);
    for (size_t i = 0; i < MARKS; i++)
        many[i * LINE] = 'a';
    std::vector<char *> objects;
    for (size_t i = 0; i < 3 * OBJECTS; i++) {
        objects.push_back(allocate(s.c.get(), SIZE));
        memset(objects[i], 'a', SIZE);
    }
    REQUIRE_OK(pm_commit(s.c.get()));
    size_t first = 0;
    while ((uintptr_t)objects[first] % PAGE != 0)
        first++;
    char *page = objects[first], *made = objects[first + 2];
    REQUIRE_OK(pm_free(made));
    REQUIRE_OK(pm_commit(s.c.get()));
    REQUIRE(allocate(s.c.get(), SIZE) == made);
    CHECK(lines_of_objects(s.c.get()) == SIZE / LINE);
    for (size_t i = 0; i < PAGE; i += LINE)
        page[i] = 'b';
    for (size_t i = 0; i < MARKS; i++)
        many[i * LINE] = 'b';
    const uint64_t words = logs() ? LINE : 0;
    CHECK(test::written_by_commit(s.c.get()) == MARKS * LINE + PAGE + words);
    s.open();
    for (size_t i = 0; i < PAGE; i++)
        REQUIRE(page[i] == (i % LINE ? 'a' : 'b'));
    REQUIRE_OK(pm_check(s.c.get()));
}

// Redo logs fresh lines there, and cannot tell to which of them the program has stored.
TEST_CASE("on a file only the log engine marks the lines of a new object together")
{
    constexpr size_t SIZE = KIB;
    test::Directory directory(".");
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    char *p = allocate(c.get(), SIZE);
    memset(p, 'a', SIZE);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(allocate(c.get(), SIZE) == p);
    CHECK(lines_of_objects(c.get()) == (logs() ? SIZE / LINE : 0));
}
