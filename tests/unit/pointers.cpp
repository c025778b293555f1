// The pointer map, against a set of offsets that a model keeps; and what it refuses.
#include "common/fixture.hpp"
#include "common/format.hpp"
#include "unit/mapped.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <sys/mman.h>

using test::base_of;
using test::mapped;
using test::offset_of;
using test::Offsets;

namespace
{

struct Node {
    uint64_t key;
    Node *next;
    struct {
        Node *left, *right;
        uint64_t weight;
    } tree;
    Node *child[3];
};

const pm_type *node_type()
{
    return PM_TYPE(Node, next, tree.left, tree.right, child);
}

void require_failure(int error, const char *words)
{
    REQUIRE(errno == error);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains(words));
}

uint64_t table_word(uint32_t segment)
{
    return FORMAT_TABLE + segment * sizeof(uint64_t);
}

// The first segment whose word has this kind, or 0.
uint32_t find_segment(const std::string &path, enum segment_kind kind)
{
    uint64_t segments = test::read_file(path).size() / (64 << 10);
    for (uint32_t i = 0; i < segments; i++)
        if (segment_kind(test::read_word(path, table_word(i))) == kind)
            return i;
    return 0;
}

} // namespace

TEST_CASE("a typed object has its pointers mapped, until it is freed")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    auto *nodes = static_cast<Node *>(pm_malloc_typed(c.get(), node_type(), 2));
    REQUIRE(nodes);
    Offsets expected;
    for (int i = 0; i < 2; i++)
        for (Node **p : {&nodes[i].next, &nodes[i].tree.left, &nodes[i].tree.right,
                         &nodes[i].child[0], &nodes[i].child[1], &nodes[i].child[2]})
            expected.insert(offset_of(c.get(), p));
    REQUIRE(expected.size() == 12);
    REQUIRE(mapped(c.get()) == expected);
    REQUIRE(std::string((char *)nodes, sizeof *nodes) == std::string(sizeof *nodes, '\0'));
    nodes[0].next = nodes + 1;
    nodes[0].tree.right = nodes + 2; // past the end
    REQUIRE(pm_check(c.get()) == 0);
    REQUIRE(pm_setroot(c.get(), nodes, 0) == 0);
    REQUIRE(pm_commit(c.get()) == 0);
    c.reset();
    c = test::open(directory / "c.pm", test::small());
    REQUIRE(mapped(c.get()) == expected);
    REQUIRE(test::stats(c.get()).segments_map == 1);
    REQUIRE(pm_free(pm_getroot(c.get())) == 0);
    REQUIRE(mapped(c.get()).empty());
    REQUIRE(pm_rollback(c.get()) == 0);
    REQUIRE(mapped(c.get()) == expected);
}

TEST_CASE("a pointer is one however it is qualified")
{
    struct Qualified {
        char *volatile one;
        long number;
        char *volatile three[3];
        char *const volatile constant;
        void (*volatile function)();
    };
    const pm_type *type = PM_TYPE(Qualified, one, three, constant, function);
    REQUIRE(type->size == sizeof(Qualified));
    const pm_field expected[] = {{0, 1}, {16, 3}, {40, 1}, {48, 1}};
    REQUIRE(type->fields == 4);
    REQUIRE(memcmp(type->field, expected, sizeof expected) == 0);
}

TEST_CASE("reallocation carries pointers along")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    auto *p = static_cast<Node *>(pm_malloc_typed(c.get(), node_type(), 1));
    size_t size = GENERATE(sizeof(Node) + 16, 4096, 200000, 32, 31, 24, 23);
    auto *q = static_cast<Node *>(pm_realloc(p, size));
    REQUIRE(q);
    REQUIRE(q != p);
    Offsets expected;
    for (Node **field :
         {&q->next, &q->tree.left, &q->tree.right, q->child, q->child + 1, q->child + 2})
        if (reinterpret_cast<char *>(field + 1) - reinterpret_cast<char *>(q) <= (ptrdiff_t)size)
            expected.insert(offset_of(c.get(), field)); // else it is cut off
    REQUIRE(mapped(c.get()) == expected);
    REQUIRE(pm_check(c.get()) == 0);
}

TEST_CASE("reallocation to where there is no room for a map of pointers")
{
    test::Directory directory;
    constexpr uint64_t SEGMENT = 64 << 10;
    pm_options how = test::small();
    how.max_size = (MAP_GROUP_SEGMENTS + 2) * SEGMENT; // a second group, of two segments
    test::Container c = test::open(directory / "c.pm", how);
    auto *p = static_cast<Node *>(pm_malloc(c.get(), SEGMENT));
    REQUIRE(p);
    REQUIRE(pm_mark_pointer(&p->next) == 0);
    std::vector<void *> fillers;
    while (void *filler = pm_malloc(c.get(), SEGMENT))
        fillers.push_back(filler);
    REQUIRE(pm_commit(c.get()) == 0);
    for (int i = 0; i < 2; i++, fillers.pop_back()) {
        REQUIRE(offset_of(c.get(), fillers.back()) >= MAP_GROUP_SEGMENTS * SEGMENT);
        REQUIRE(pm_free(fillers.back()) == 0);
    }
    REQUIRE(pm_commit(c.get()) == 0);
    REQUIRE(pm_realloc(p, 2 * SEGMENT) == nullptr);
    require_failure(ENOSPC, "no room for a map of pointers");
    REQUIRE(mapped(c.get()) == Offsets{offset_of(c.get(), &p->next)});
    REQUIRE(pm_check(c.get()) == 0);
    REQUIRE(pm_malloc(c.get(), 2 * SEGMENT)); // nothing is left of the attempt
}

// The file grows for the larger object, and is cut off again. The call has marked two lines of it. A commit
// that looks at one of them dies.
TEST_CASE("a reallocation that fails leaves no marks behind the end of the file", "[stores]")
{
    constexpr uint64_t SEGMENT = 64 << 10;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::small();
    how.max_size = (MAP_GROUP_SEGMENTS + 1) * SEGMENT; // a second group, without room for its map
    test::Container c = test::open(path, how);
    auto *p = static_cast<Node *>(pm_malloc(c.get(), sizeof(Node)));
    REQUIRE(p);
    REQUIRE_OK(pm_mark_pointer(&p->next));
    // The rest of the first group, at once: so the file ends there.
    char *filler = static_cast<char *>(pm_malloc(c.get(), SEGMENT));
    REQUIRE(filler);
    const uint64_t left = MAP_GROUP_SEGMENTS * SEGMENT - offset_of(c.get(), filler) - SEGMENT;
    REQUIRE(pm_malloc(c.get(), left) == filler + SEGMENT);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_realloc(p, SEGMENT) == nullptr);
    require_failure(ENOSPC, "no room for a map of pointers");
    if (GENERATE(false, true))
        REQUIRE_OK(pm_commit(c.get()));
    char *object = static_cast<char *>(pm_malloc(c.get(), SEGMENT));
    REQUIRE(object == filler + SEGMENT + left);
    for (int line : {5, 1, 0}) // the first store opens the page, so the others do not fault
        object[line * 64] = 7;
    REQUIRE_OK(pm_setroot(c.get(), object, 0));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options());
    object = static_cast<char *>(pm_getroot(c.get()));
    for (int line : {0, 1, 5})
        CHECK(object[line * 64] == 7);
}

TEST_CASE("marks at every boundary of the map")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    constexpr uint64_t segment = 64 << 10, group = MAP_GROUP_SEGMENTS * segment;
    // Words of the map, pages of it, and three groups.
    auto *p = static_cast<char *>(pm_malloc(c.get(), 2 * group + segment));
    REQUIRE(p);
    memset(p, 0, 2 * group + segment);
    uint64_t start = offset_of(c.get(), p);
    uint64_t unit = GENERATE_COPY(uint64_t{MAP_WORD_BYTES}, MAP_WORD_BYTES * PM_PAGE / 8, group);
    uint64_t edge = divide_up(start + 8 * 57, unit) * unit;
    uint64_t before = GENERATE(0u, 1u, 2u, 57u), after = GENERATE(0u, 1u, 2u, 57u);
    if (before + after == 0)
        return;
    uint64_t from = edge - 8 * before, to = edge + 8 * after;
    REQUIRE(pm_mark_pointers(p + (from - start), before + after) == 0);
    Offsets expected;
    for (uint64_t at = from; at < to; at += 8)
        expected.insert(at);
    REQUIRE(mapped(c.get()) == expected);
    REQUIRE(pm_check(c.get()) == 0);
    REQUIRE(pm_mark_data(p + (from - start) + 1, 0) == 0); // nothing, if in the middle of a word
    REQUIRE(mapped(c.get()) == expected);
    // Data over the middle; a byte takes its whole word.
    REQUIRE(pm_mark_data(p + (edge - start), 1) == 0);
    expected.erase(edge);
    REQUIRE(mapped(c.get()) == expected);
    REQUIRE(pm_mark_data(p + (from - start), to - from) == 0);
    REQUIRE(mapped(c.get()).empty());
}

TEST_CASE("the map follows a model through commits, rollbacks and new openings")
{
    test::Directory directory;
    unsigned seed = GENERATE(1u, 2u, 3u);
    CAPTURE(seed);
    std::mt19937 random(seed);
    test::Container c = test::open(directory / "c.pm", test::small());
    struct State {
        std::map<uint64_t, uint64_t> objects; // offset, size
        Offsets words;
    } now, committed;
    auto at = [&](uint64_t offset) { return (char *)pm_getroot(c.get()) + offset; };
    // Offsets count from the root, which lies first.
    REQUIRE(pm_setroot(c.get(), pm_calloc(c.get(), 1, 16), 0) == 0);
    REQUIRE(pm_commit(c.get()) == 0);
    uint64_t origin = offset_of(c.get(), pm_getroot(c.get()));
    auto some_object = [&] {
        auto it = now.objects.begin();
        std::advance(it, random() % now.objects.size());
        return it;
    };
    auto forget = [&](uint64_t from, uint64_t bytes) {
        now.words.erase(now.words.lower_bound(from), now.words.lower_bound(from + bytes));
    };
    for (int step = 0; step < 3000; step++) {
        unsigned what = random() % 100;
        if (what < 30 || now.objects.empty()) {
            uint64_t size = random() % 50 == 0 ? 70000 : 16 * (1 + random() % 40);
            void *p = pm_calloc(c.get(), 1, size);
            REQUIRE(p);
            now.objects[offset_of(c.get(), p) - origin] = size;
        } else if (what < 70) {
            auto o = some_object();
            uint64_t words = o->second / 8, first = random() % words;
            uint64_t count = 1 + random() % std::min<uint64_t>(words - first, 20);
            REQUIRE(pm_mark_pointers(at(o->first + 8 * first), count) == 0);
            for (uint64_t i = first; i < first + count; i++)
                now.words.insert(o->first + 8 * i);
        } else if (what < 80) {
            auto o = some_object();
            uint64_t first = random() % (o->second / 8), count = random() % 20;
            count = std::min(count, o->second / 8 - first);
            REQUIRE(pm_mark_data(at(o->first + 8 * first), 8 * count) == 0);
            forget(o->first + 8 * first, 8 * count);
        } else if (what < 93) {
            auto o = some_object();
            REQUIRE(pm_free(at(o->first)) == 0);
            forget(o->first, o->second);
            now.objects.erase(o);
        } else if (what < 96) {
            REQUIRE(pm_commit(c.get()) == 0);
            committed = now;
        } else {
            if (what < 98) {
                REQUIRE(pm_rollback(c.get()) == 0);
            } else {
                c.reset();
                c = test::open(directory / "c.pm", test::small());
            }
            now = committed;
        }
        if (step % 10 == 0) {
            Offsets expected;
            for (uint64_t word : now.words)
                expected.insert(word + origin);
            if (mapped(c.get()) != expected)
                FAIL("step " << step);
            REQUIRE(pm_check(c.get()) == 0);
        }
    }
}

TEST_CASE("a container without pointers has no map, and one that was cleared has none again")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    void *p = pm_calloc(c.get(), 1, 64);
    REQUIRE(pm_commit(c.get()) == 0);
    REQUIRE(test::stats(c.get()).segments_map == 0);
    REQUIRE(pm_mark_pointer(p) == 0);
    REQUIRE(test::stats(c.get()).segments_map == 1);
    REQUIRE(pm_rollback(c.get()) == 0);
    REQUIRE(test::stats(c.get()).segments_map == 0);
    REQUIRE(mapped(c.get()).empty());
    REQUIRE(pm_mark_pointer(p) == 0);
    REQUIRE(pm_commit(c.get()) == 0);
    REQUIRE(pm_clear(c.get()) == 0);
    REQUIRE(test::stats(c.get()).segments_map == 0);
    p = pm_calloc(c.get(), 1, 64);
    REQUIRE(mapped(c.get()).empty());
    REQUIRE(pm_mark_pointer(p) == 0);
    REQUIRE(pm_commit(c.get()) == 0);
    REQUIRE(mapped(c.get()) == Offsets{offset_of(c.get(), p)});
    REQUIRE(pm_check(c.get()) == 0);
}

TEST_CASE("data in a part of a word is no pointer in the rest")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    auto *words = static_cast<char *>(pm_calloc(c.get(), 8, 8));
    REQUIRE(words);
    REQUIRE_OK(pm_mark_pointers(words, 8));
    auto first_from = [&](size_t i) {
        void *p = pm_next_pointer(words + 8 * i, words + 64);
        return p ? (static_cast<char *>(p) - words) / 8 : 8;
    };
    REQUIRE_OK(pm_mark_data(words + 9, 8)); // of words 1 and 2
    REQUIRE(first_from(0) == 0);
    REQUIRE(first_from(1) == 3);
    REQUIRE_OK(pm_mark_data(words + 39, 1)); // of word 4
    REQUIRE(first_from(3) == 3);
    REQUIRE(first_from(4) == 5);
    REQUIRE_OK(pm_mark_data(words + 56, 0));
    REQUIRE(first_from(7) == 7);
}

TEST_CASE("what is no pointer's place is refused")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    auto *p = static_cast<char *>(pm_calloc(c.get(), 1, 64));
    int local = 0;
    REQUIRE(pm_mark_pointer(&local) == -1);
    require_failure(EINVAL, "in no open container");
    REQUIRE(pm_mark_pointer(p + 4) == -1);
    require_failure(EINVAL, "aligned");
    REQUIRE(pm_mark_pointers(p, 9) == -1);
    require_failure(EINVAL, "beyond their object");
    REQUIRE(pm_mark_pointers(p + 56, SIZE_MAX) == -1);
    require_failure(EINVAL, "beyond their object");
    REQUIRE(pm_mark_pointer(p + 64) == -1); // a free slot
    require_failure(EINVAL, "in no object");
    REQUIRE(pm_mark_pointer(p - offset_of(c.get(), p)) == -1); // the header
    require_failure(EINVAL, "in no object");
    REQUIRE(pm_mark_pointer(p + (32 << 20)) == -1); // beyond the end of the file
    require_failure(EINVAL, "in no object");
    REQUIRE(pm_mark_data(&c, 8) == -1);
    require_failure(EINVAL, "in no open container");
    REQUIRE(pm_mark_data(p, SIZE_MAX) == -1);
    require_failure(EINVAL, "beyond the container");
    REQUIRE(mapped(c.get()).empty());

    const pm_field good[] = {{8, 7}}, odd[] = {{4, 1}}, large[] = {{0, 9}}, beyond[] = {{72, 0}};
    const pm_type types[] = {{64, 1, good},  {60, 1, good},   {64, 1, odd},
                             {64, 1, large}, {64, 1, beyond}, {64, 1, nullptr}};
    REQUIRE(pm_malloc_typed(c.get(), &types[0], 1));
    for (const pm_type *type :
         {&types[1], &types[2], &types[3], &types[4], &types[5], (const pm_type *)nullptr}) {
        REQUIRE(pm_malloc_typed(c.get(), type, 1) == nullptr);
        require_failure(EINVAL, "PM_TYPE");
    }
    REQUIRE(pm_malloc_typed(c.get(), &types[0], SIZE_MAX / 32) == nullptr);
    require_failure(ENOSPC, "no room");
}

TEST_CASE("without room for a map nothing is mapped, and a typed object is not left behind")
{
    test::Directory directory;
    pm_options how = test::small();
    how.max_size = 1 << 20; // 16 segments
    test::Container c = test::open(directory / "c.pm", how);
    void *p = pm_calloc(c.get(), 1, 64), *rest = nullptr;
    for (uint64_t size = how.max_size; !(rest = pm_malloc(c.get(), size)); size -= 64 << 10)
        ;
    REQUIRE(pm_mark_pointer(p) == -1);
    require_failure(ENOSPC, "map of pointers");
    REQUIRE(pm_malloc_typed(c.get(), node_type(), 1) == nullptr);
    require_failure(ENOSPC, "map of pointers");
    REQUIRE(pm_check(c.get()) == 0);
    REQUIRE(pm_free(rest) == 0);
    REQUIRE(pm_mark_pointer(p) == 0);
    REQUIRE(mapped(c.get()) == Offsets{offset_of(c.get(), p)});
}

// The range lies in three groups. The root's group has a map already. The free segment is enough for one of
// the other two.
TEST_CASE("a range whose second map has no room gives back its first map, and no older map",
          "[faults]")
{
    constexpr size_t SEGMENT = 64 << 10, GROUP = MAP_GROUP_SEGMENTS * SEGMENT, MIB = 1 << 20;
    test::Directory directory;
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    how.max_size = 16 * MIB;
    test::Container c = test::open(directory / "c.pm", how);
    auto *large = static_cast<char *>(pm_malloc(c.get(), 8 * MIB));
    auto **root = static_cast<void **>(pm_calloc(c.get(), 4, sizeof(void *)));
    REQUIRE((large && root));
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    *root = large;
    REQUIRE_OK(pm_commit(c.get()));

    REQUIRE_OK(pm_mark_pointer(root)); // the transaction's first map
    std::vector<void *> fillers;
    while (void *filler = pm_malloc(c.get(), SEGMENT))
        fillers.push_back(filler);
    REQUIRE_OK(pm_free(fillers.back())); // room for one more map
    fillers.pop_back();
    char *from = large + 3 * MIB;
    const uint64_t first = offset_of(c.get(), from) / GROUP,
                   last = (offset_of(c.get(), from) + 4 * MIB - 1) / GROUP;
    REQUIRE(last - first == 2);
    REQUIRE(offset_of(c.get(), root) / GROUP == last);
    REQUIRE(pm_mark_pointers(from, 4 * MIB / sizeof(void *)) == -1);
    require_failure(ENOSPC, "no room for a map of pointers");
    REQUIRE(pm_next_pointer(root, root + 4) == root);

    for (void *filler : fillers)
        REQUIRE_OK(pm_free(filler));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(root, root + 4) == root);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("pm_check reports what is wrong with pointers and their map", "[home]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    auto *p = static_cast<char **>(pm_calloc(c.get(), 8, 8));
    REQUIRE(pm_setroot(c.get(), p, 0) == 0);
    REQUIRE(pm_mark_pointers(p, 2) == 0);
    p[0] = (char *)p;
    char *base = (char *)p - offset_of(c.get(), p);
    p[1] = base + (64 << 20);
    REQUIRE(pm_check(c.get()) == 0);
    for (uintptr_t none : {uintptr_t{1}, uintptr_t{4095}, -uintptr_t{4096}, -uintptr_t{1}}) {
        p[1] = reinterpret_cast<char *>(none);
        REQUIRE(pm_check(c.get()) == 0);
    }
    for (char *wrong :
         {base - 1, base + (64 << 20) + 1, (char *)&path, (char *)4096, (char *)-uintptr_t{4097}}) {
        p[1] = wrong;
        REQUIRE(pm_check(c.get()) == -1);
        require_failure(EBADMSG, "leads out of the container");
    }
    p[1] = nullptr;
    REQUIRE(pm_free(pm_malloc(c.get(), 100000)) == 0); // free segments
    uint64_t word = offset_of(c.get(), p) / 8;
    REQUIRE(pm_commit(c.get()) == 0);
    c.reset();
    uint32_t map = find_segment(path, SEGMENT_MAP);
    REQUIRE(map != 0);

    SECTION("a flipped bit of the map")
    {
        test::flip_bit(path, map * (64 << 10) + word / 56 * 8, word % 56);
        c = test::open(path, test::small());
        REQUIRE(pm_check(c.get()) == -1);
        require_failure(EBADMSG, "a word of the pointer map is damaged");
    }
    SECTION("a pointer where there is no object, before all of them and behind")
    {
        uint64_t stray = GENERATE(0u, 4096u + 7u, 200000u); // the last is beyond the file's end
        uint64_t forged = seal(UINT64_C(1) << stray % 56);
        test::patch_file(path, map * (64 << 10) + stray / 56 * 8, &forged, sizeof forged);
        c = test::open(path, test::small());
        REQUIRE(pm_check(c.get()) == -1);
        require_failure(EBADMSG, "where there is no object");
    }
    SECTION("two maps of one group")
    {
        uint32_t free = find_segment(path, SEGMENT_FREE);
        uint64_t forged = segment_word(SEGMENT_MAP, 0);
        test::forge_word(path, table_word(free), forged);
        c = test::open(path, test::small());
        REQUIRE(pm_check(c.get()) == -1);
        require_failure(EBADMSG, "two maps");
    }
    SECTION("a map of a group that there is not")
    {
        uint64_t forged = segment_word(SEGMENT_MAP, format_map_groups(1024));
        test::patch_file(path, table_word(map), &forged, sizeof forged);
        pm_options how = test::small();
        REQUIRE(pm_open(path.c_str(), &how) == nullptr);
        require_failure(EBADMSG, "segment table");
    }
}

TEST_CASE("freeing a large object forgets what was stored there", "[stores]")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    const size_t bytes = 3 << 20;
    void **p = static_cast<void **>(pm_malloc(c.get(), bytes));
    REQUIRE(p);
    for (size_t i = 0; i < bytes / sizeof *p; i++)
        p[i] = p;
    SECTION("when it is committed, it is mapped")
    {
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(mapped(c.get()).size() == bytes / sizeof *p);
    }
    SECTION("when it is freed, its memory is data")
    {
        REQUIRE_OK(pm_free(p));
        REQUIRE(pm_malloc(c.get(), bytes) == p);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(mapped(c.get()).empty());
    }
}

TEST_CASE("a part of a word that an object keeps as it is made smaller is data", "[stores]")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    const int words = 16;
    void **p = static_cast<void **>(pm_malloc(c.get(), words * sizeof *p));
    for (int i = 0; i < words; i++)
        p[i] = p;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(c.get()));
    // The same memory now holds text, and behind it numbers that look like pointers.
    char *text = static_cast<char *>(pm_malloc(c.get(), words * sizeof *p));
    REQUIRE(text == static_cast<void *>(p));
    strcpy(text, "text");
    REQUIRE_OK(pm_commit(c.get()));
    const size_t bytes = static_cast<size_t>(GENERATE(range(41, 49)));
    text = static_cast<char *>(pm_realloc(text, bytes));
    REQUIRE(text != static_cast<void *>(p));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).empty());
}

// For a range of 1 MiB or more, libpm gives whole pages of the kinds table back to the system. The last 128
// bytes of this range share their page of the table with other words, so libpm clears their kinds one by one.
TEST_CASE("data that replaces a pointer at the end of a large range is no pointer", "[stores]")
{
    constexpr size_t MIB = 1 << 20;
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    auto *object = static_cast<char *>(pm_malloc(c.get(), 2 * MIB));
    REQUIRE(object);
    REQUIRE_OK(pm_setroot(c.get(), object, 0));
    REQUIRE_OK(pm_commit(c.get()));
    auto *word = reinterpret_cast<void **>(object + MIB + 64);
    *word = object;
    REQUIRE_OK(pm_mark_pointer(word));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()) == Offsets{offset_of(c.get(), word)});
    memset(object, 0x41, MIB + 128);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).empty());
    REQUIRE_OK(pm_check(c.get()));
}

// The pass cannot tell what it is.
[[gnu::noinline]] static void put_number(uint64_t *to, uint64_t number)
{
    *to = number;
}

TEST_CASE("a number of unknown origin is a pointer if it leads to where objects are", "[stores]")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    const auto base = reinterpret_cast<uint64_t>(base_of(c.get()));
    auto *words = static_cast<uint64_t *>(pm_malloc(c.get(), 8 * sizeof(uint64_t)));
    const size_t bytes = 3 << 20; // whole segments
    const auto large = reinterpret_cast<uint64_t>(pm_malloc(c.get(), bytes));
    const uint64_t elsewhere[] = {base - 1, base, base + FORMAT_TABLE, base + bytes * 100};
    const uint64_t objects[] = {reinterpret_cast<uint64_t>(words), large, large + bytes - 1,
                                large + bytes};
    for (int i = 0; i < 4; i++) {
        put_number(words + i, elsewhere[i]);
        put_number(words + 4 + i, objects[i]);
    }
    REQUIRE_OK(pm_commit(c.get()));
    Offsets expected;
    for (int i = 4; i < 8; i++)
        expected.insert(offset_of(c.get(), words + i));
    REQUIRE(mapped(c.get()) == expected);
}

TEST_CASE("sorting carries pointers along", "[stores]")
{
    struct Item {
        union {
            void *pointer;
            uint64_t number;
        };
        uint64_t key;
    };
    auto compare = [](const void *a, const void *b) {
        uint64_t x = static_cast<const Item *>(a)->key, y = static_cast<const Item *>(b)->key;
        return (x > y) - (x < y);
    };
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    Item *items = static_cast<Item *>(pm_calloc(c.get(), 5, sizeof *items));
    for (uint64_t i = 0; i < 5; i++) {
        items[i].pointer = &items[i];
        items[i].key = 5 - i;
    }
    items[2].pointer = nullptr; // says nothing of the others
    SECTION("of elements that all have one there") {}
    SECTION("of elements that differ, by their values")
    {
        items[0].number = 77;
    }
    qsort(items, 5, sizeof *items, compare);
    REQUIRE_OK(pm_commit(c.get()));
    const Offsets words = mapped(c.get());
    for (int i = 0; i < 5; i++) {
        REQUIRE(items[i].key == (uint64_t)i + 1);
        REQUIRE(words.count(offset_of(c.get(), &items[i].key)) == 0);
        if (items[i].pointer)
            REQUIRE(words.count(offset_of(c.get(), &items[i])) ==
                    (pm_contains(c.get(), items[i].pointer) ? 1 : 0));
    }
}

// Rule P4 (base/marks.h). An address lies across two words, half of it in each, and is copied to one word.
TEST_CASE("eight bytes across two words are data only if both words are", "[stores]")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    auto *words = static_cast<uint64_t *>(pm_malloc(c.get(), 64));
    REQUIRE(words);
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    REQUIRE_OK(pm_commit(c.get()));
    const auto address = reinterpret_cast<uint64_t>(words);
    char *across = reinterpret_cast<char *>(words) + 4;
    memcpy(across, &address, sizeof address); // in pieces, as it is for both words
    SECTION("one is data")
    {
        REQUIRE_OK(pm_mark_data(&words[GENERATE(0, 1)], 8));
        memcpy(&words[4], across, sizeof address);
        REQUIRE(pm_commit(c.get()) == -1);
        require_failure(EINVAL, "was stored in pieces");
    }
    SECTION("both are")
    {
        REQUIRE_OK(pm_mark_data(words, 16));
        memcpy(&words[4], across, sizeof address);
        REQUIRE_OK(pm_commit(c.get()));
    }
    SECTION("one is, and of the other an object has kept a part")
    {
        REQUIRE_OK(pm_mark_data(words, 16));
        auto *kept = static_cast<char *>(pm_realloc(words, 12));
        REQUIRE(kept != static_cast<void *>(words));
        auto *copy = static_cast<uint64_t *>(pm_malloc(c.get(), sizeof address));
        REQUIRE(copy);
        memcpy(copy, kept + 4, sizeof address);
        REQUIRE(*copy == address);
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE(mapped(c.get()).empty());
}

// Kinds of mapped words are copied 512 at a time, and from the end if the words move up.
TEST_CASE("many words that move within an object stay what they are", "[stores]")
{
    constexpr uint64_t WORDS = 1400, ROOM = 2000;
    const uint64_t from = GENERATE(300u, 0u), to = 300 - from;
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    auto *words = static_cast<uint64_t *>(pm_calloc(c.get(), ROOM, sizeof(uint64_t)));
    REQUIRE(words);
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    const bool declared = GENERATE(false, true), committed = GENERATE(false, true);
    std::mt19937 random(1);
    std::vector<uint64_t> pointers;
    for (uint64_t i = 0; i < WORDS; i++) {
        auto **word = reinterpret_cast<void **>(&words[from + i]);
        *word = word;
        if (random() % 2)
            pointers.push_back(i);
        else
            REQUIRE_OK(pm_mark_data(word, sizeof *word));
    }
    for (uint64_t i : pointers)
        if (declared)
            REQUIRE_OK(pm_mark_pointer(&words[from + i]));
    if (committed)
        REQUIRE_OK(pm_commit(c.get()));
    memmove(words + to, words + from, WORDS * sizeof(uint64_t));
    REQUIRE_OK(pm_commit(c.get()));
    std::vector<uint64_t> found;
    for (uint64_t i = 0; i < WORDS; i++)
        if (pm_next_pointer(&words[to + i], &words[to + i + 1]))
            found.push_back(i);
    const bool same = found == pointers;
    REQUIRE(same);
}

TEST_CASE("numbers that are copied over pointers are data, however many", "[stores]")
{
    const uint64_t count = GENERATE(1u, 7u, 8u, 9u, 16u, 17u, 63u, 64u, 65u, 600u);
    CAPTURE(count);
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    auto *words = static_cast<uint64_t *>(pm_calloc(c.get(), 2 * count, sizeof(uint64_t)));
    REQUIRE(words);
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    for (uint64_t i = 0; i < 2 * count; i++)
        words[i] = reinterpret_cast<uint64_t>(words + i);
    REQUIRE_OK(pm_mark_data(words, count * sizeof(uint64_t)));
    REQUIRE_OK(pm_mark_pointers(reinterpret_cast<void **>(words + count), count));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).size() == count);
    memcpy(words + count, words, count * sizeof(uint64_t));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).empty());
}

TEST_CASE("a declared pointer to memory that is unmapped fails a commit", "[faults]")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    auto **root = static_cast<void **>(pm_calloc(c.get(), 1, sizeof(void *)));
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    REQUIRE_OK(pm_mark_pointer(root));
    REQUIRE_OK(pm_commit(c.get()));
    void *gone = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(gone != MAP_FAILED);
    REQUIRE(munmap(gone, 4096) == 0);
    *root = gone;
    REQUIRE(pm_commit(c.get()) == -1);
    require_failure(EINVAL, "leads out");
    *root = MAP_FAILED; // no address
    REQUIRE_OK(pm_commit(c.get()));
}

// Notes of pages that live or die are for one commit, also if it fails before the engine begins.
TEST_CASE("a commit that fails for a pointer leaves nothing behind, however often it is tried")
{
    constexpr size_t LARGE = 32 << 20, TRIES = 400;
    test::Directory directory;
    pm_options how = test::options(PM_CREATE | PM_MOVABLE);
    how.max_size = 64 << 20;
    test::Container c = test::open(directory / "c.pm", how);
    auto **root = static_cast<void **>(pm_calloc(c.get(), 1, sizeof(void *)));
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    REQUIRE_OK(pm_mark_pointer(root));
    REQUIRE_OK(pm_commit(c.get()));
    auto *large = static_cast<char *>(pm_malloc(c.get(), LARGE));
    REQUIRE(large);
    large[LARGE - 1] = 'x';
    int on_the_stack;
    *root = &on_the_stack;
    for (size_t i = 0; i < TRIES; i++) {
        REQUIRE(pm_commit(c.get()) == -1);
        require_failure(EINVAL, "leads out");
    }
    *root = large;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(large[LARGE - 1] == 'x');
}

// The failed commit gives empty slabs back to the container. The rollback must restore their bitmaps.
TEST_CASE("a commit that fails for a pointer leaves the slabs that it gave back", "[faults]")
{
    constexpr size_t OBJECTS = 200, FREED = 60, BYTES = 1024;
    test::Directory directory;
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    how.max_size = 16 << 20;
    test::Container c = test::open(directory / "c.pm", how);
    auto **root = static_cast<void **>(pm_calloc(c.get(), 1, sizeof(void *)));
    REQUIRE(root);
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    REQUIRE_OK(pm_mark_pointer(root));
    std::vector<char *> objects;
    for (size_t i = 0; i < OBJECTS; i++) {
        objects.push_back(static_cast<char *>(pm_malloc(c.get(), BYTES)));
        REQUIRE(objects.back());
        memset(objects.back(), (int)i, BYTES);
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (size_t i = 0; i < FREED; i++)
        REQUIRE_OK(pm_free(objects[i]));
    int on_the_stack;
    *root = &on_the_stack;
    REQUIRE(pm_commit(c.get()) == -1);
    require_failure(EINVAL, "leads out");
    REQUIRE_OK(pm_rollback(c.get()));
    for (size_t i = 0; i < OBJECTS; i++) {
        CAPTURE(i);
        REQUIRE(pm_usable_size(objects[i]) != 0);
        REQUIRE(objects[i][BYTES - 1] == (char)i);
    }
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_OK(pm_free(objects[3]));
}
