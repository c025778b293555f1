// The pointer map of structures that code compiled by pmcc has built, beside the maps that types
// and marks make of the same structures; and what pointers out of the container do to a commit.
#include "recorded.h"

#include "common/fixture.hpp"
#include "recorded_errors.h"
#include "unit/mapped.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace
{

enum class Way { Pass, Types, Marks };
Way way;

struct Structure {
    std::string name;
    build_function *build;
    check_function *check;
};

std::vector<Structure> &structures()
{
    static std::vector<Structure> all;
    return all;
}

using test::offset_of;
using test::Offsets;

// The mapped words that have an address: not NULL, nor NULL with a tag, which need no map.
Offsets mapped(pm_container *c)
{
    const char *base = test::base_of(c);
    Offsets offsets = test::mapped(c);
    std::erase_if(offsets, [&](uint64_t at) {
        return *reinterpret_cast<const uint64_t *>(base + at) < 4096;
    });
    return offsets;
}

pm_options how(Way w)
{
    pm_options options = {};
    options.size = sizeof options;
    options.flags = PM_CREATE | PM_MOVABLE;
    options.tracker = w == Way::Pass ? PM_TRACKER_STORES : PM_TRACKER_FAULTS;
    options.max_size = 64 << 20;
    options.segment_size = 64 << 10;
    return options;
}

// The maps after each step.
std::vector<Offsets> build(const Structure &structure, const std::string &path, Way w)
{
    way = w;
    test::Container c = test::open(path, how(w));
    std::vector<Offsets> maps;
    void *first = pm_calloc(c.get(), 1, 16); // so that the map's segment comes before all others
    REQUIRE(pm_mark_pointer(first) == 0);
    REQUIRE(pm_free(first) == 0);
    for (int step = 0; step < STEPS; step++) {
        structure.build(c.get(), step);
        REQUIRE_OK(pm_commit(c.get()));
        maps.push_back(mapped(c.get()));
        if (w == Way::Pass)
            REQUIRE_OK(pm_check(c.get()));
    }
    return maps;
}

// The words that are in one of two maps, by the step after which they were.
std::string differences(const std::vector<Offsets> &recorded, const std::vector<Offsets> &declared)
{
    std::ostringstream text;
    for (int step = 0; step < STEPS; step++) {
        for (uint64_t at : recorded[step])
            if (!declared[step].contains(at))
                text << " step " << step << " only recorded " << at;
        for (uint64_t at : declared[step])
            if (!recorded[step].contains(at))
                text << " step " << step << " only declared " << at;
    }
    return text.str();
}

void check(const Structure &structure, pm_container *c)
{
    const char *wrong = structure.check(c);
    CHECK(std::string(wrong ? wrong : "") == "");
}

} // namespace

void add_structure(const char *name, build_function *build, check_function *check)
{
    structures().push_back({name, build, check});
}

void *make_bytes(pm_container *c, size_t bytes)
{
    void *p = pm_calloc(c, 1, bytes);
    REQUIRE(p);
    return p;
}

void *root_bytes(pm_container *c, int step, size_t bytes)
{
    if (step == 0)
        REQUIRE(pm_setroot(c, make_bytes(c, bytes), 0) == 0);
    return pm_getroot(c);
}

void *make(pm_container *c, const pm_type *type, size_t count)
{
    if (way == Way::Types) {
        void *p = pm_malloc_typed(c, type, count);
        REQUIRE(p);
        return p;
    }
    auto *p = static_cast<char *>(make_bytes(c, count * type->size));
    for (size_t i = 0; i < count && way == Way::Marks; i++)
        for (size_t f = 0; f < type->fields; f++)
            REQUIRE(pm_mark_pointers(p + i * type->size + type->field[f].offset,
                                     type->field[f].count) == 0);
    return p;
}

void has_pointer(void *field)
{
    if (way != Way::Pass)
        REQUIRE(pm_mark_pointer(field) == 0);
}

void has_data(void *field, size_t bytes)
{
    if (way != Way::Pass)
        REQUIRE(pm_mark_data(field, bytes) == 0);
}

long number(long n)
{
    return n;
}

TEST_CASE("what the pass records is what types and marks declare")
{
    REQUIRE(structures().size() == 39);
    for (const Structure &structure : structures()) {
        INFO(structure.name);
        test::Directory directory;
        std::string path = directory / "pass.pm", copy = directory / "copy.pm";
        auto recorded = build(structure, path, Way::Pass);
        CHECK(recorded.back().size() > 0);
        CHECK(differences(recorded, build(structure, directory / "types.pm", Way::Types)) == "");
        CHECK(differences(recorded, build(structure, directory / "marks.pm", Way::Marks)) == "");
        std::filesystem::copy_file(path, copy);
        way = Way::Pass;
        test::Container a = test::open(path, how(way)), b = test::open(copy, how(way));
        REQUIRE(pm_getroot(a.get()) != pm_getroot(b.get()));
        check(structure, a.get());
        check(structure, b.get());
    }
}

TEST_CASE("a pointer that leads out of the container fails the commit, or not, as the program says")
{
    test::Directory directory;
    auto what = GENERATE(Foreign::Stack, Foreign::Heap, Foreign::Container, Foreign::Mapped);
    auto policy = GENERATE(PM_FOREIGN_ERROR, PM_FOREIGN_IGNORE);
    bool vouched = GENERATE(true, false);
    pm_options options = how(Way::Pass);
    options.foreign_pointers = policy;
    if (!vouched)
        options.flags &= ~PM_MOVABLE;
    test::Container c = test::open(directory / "c.pm", options);
    test::Container other = test::open(directory / "other.pm", how(Way::Pass));
    REQUIRE(pm_setroot(other.get(), make_bytes(other.get(), 64), 0) == 0);
    auto *holder = static_cast<Holder *>(make_bytes(c.get(), sizeof(Holder)));
    REQUIRE(pm_setroot(c.get(), holder, 0) == 0);
    bool earlier = GENERATE(true, false);
    if (earlier)
        REQUIRE_OK(pm_commit(c.get()));
    store_foreign(holder, what, other.get());
    if (policy == PM_FOREIGN_ERROR && vouched) {
        for (int i = 0; i < 2; i++) { // it stays an error
            REQUIRE(pm_commit(c.get()) == -1);
            REQUIRE(errno == EINVAL);
            REQUIRE_THAT(pm_errormsg(), Catch::Contains("byte 8 of the object of 16 bytes"));
            REQUIRE_THAT(pm_errormsg(), Catch::Contains("leads out of the container"));
        }
        store_number(holder, 7);
        store_pointer(holder, holder);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(mapped(c.get()) == Offsets{offset_of(c.get(), &holder->pointer)});
    } else {
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(mapped(c.get()).empty());
    }
    REQUIRE_OK(pm_check(c.get()));
}

// A root whose pointer is committed: to itself.
static Holder *hold_pointer(pm_container *c)
{
    auto *holder = static_cast<Holder *>(root_bytes(c, 0, sizeof(Holder)));
    store_pointer(holder, holder);
    REQUIRE_OK(pm_commit(c));
    return holder;
}

// The same when it is opened again, so that its page is closed.
static Holder *reopen(test::Container &c, const std::string &path)
{
    c.reset();
    c = test::open(path, how(Way::Pass));
    return static_cast<Holder *>(pm_getroot(c.get()));
}

TEST_CASE("a pointer to a function, a constant, or the table of a class is as good as any")
{
    test::Directory directory;
    auto what = GENERATE(Foreign::Function, Foreign::Constant, Foreign::VirtualTable);
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    auto *holder = static_cast<Holder *>(make_bytes(c.get(), sizeof(Holder)));
    REQUIRE(pm_setroot(c.get(), holder, 0) == 0);
    store_foreign(holder, what, nullptr);
    REQUIRE_OK(pm_commit(c.get()));
    void *word = what == Foreign::VirtualTable ? static_cast<void *>(holder) : &holder->pointer;
    REQUIRE(mapped(c.get()) == Offsets{offset_of(c.get(), word)});
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a pointer into a module is refused where the program says so, however it came there")
{
    test::Directory directory;
    pm_options options = how(Way::Pass);
    options.module_pointers = PM_MODULES_REFUSE;
    options.foreign_pointers = GENERATE(PM_FOREIGN_ERROR, PM_FOREIGN_IGNORE);
    test::Container c = test::open(directory / "c.pm", options);
    auto *holder = static_cast<Holder *>(make_bytes(c.get(), sizeof(Holder)));
    REQUIRE(pm_setroot(c.get(), holder, 0) == 0);
    store_foreign(holder, GENERATE(Foreign::Function, Foreign::Constant), nullptr);
    void *pointer = holder->pointer;
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(errno == EINVAL);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("byte 8 of the object of 16 bytes") &&
                                    Catch::Contains("PM_MODULES_REFUSE"));
    store_pointer(holder, nullptr);
    copy(&holder->number, &pointer, sizeof pointer); // by its value
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("byte 0 of the object of 16 bytes") &&
                                    Catch::Contains("PM_MODULES_REFUSE"));
    store_number(holder, 7);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).empty());
}

TEST_CASE("a warning of a pointer that leads out of the container goes to stderr")
{
    test::Directory directory;
    pm_options options = how(Way::Pass);
    options.foreign_pointers = PM_FOREIGN_WARN;
    test::Container c = test::open(directory / "c.pm", options);
    auto *holder = static_cast<Holder *>(make_bytes(c.get(), sizeof(Holder)));
    store_foreign(holder, Foreign::Heap, nullptr);
    std::string path = directory / "stderr";
    int terminal = dup(2), file = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
    dup2(file, 2);
    int result = pm_commit(c.get());
    dup2(terminal, 2);
    close(terminal);
    close(file);
    REQUIRE_OK(result);
    REQUIRE_THAT(test::read_file(path),
                 Catch::Contains("libpm: ") && Catch::Contains("byte 8 of the object of 16 bytes"));
    REQUIRE(mapped(c.get()).empty());
}

TEST_CASE("a number over a pointer that realloc has moved is data, even if it was there before")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    size_t large = 256;
    auto *former = static_cast<Holder *>(make_bytes(c.get(), large));
    make_bytes(c.get(), large); // so that the segment stays theirs
    store_computed(&former->pointer, 1.75);
    auto *holder = static_cast<Holder *>(make_bytes(c.get(), sizeof(Holder)));
    store_pointer(holder, holder);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_free(former) == 0);
    REQUIRE_OK(pm_commit(c.get()));
    holder = static_cast<Holder *>(pm_realloc(holder, large));
    REQUIRE(holder == former);
    store_computed(&holder->pointer, 1.75);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).empty());
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("what can be no address is no pointer")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    Holder *holder = hold_pointer(c.get());
    auto is_data = [&](long value) {
        store_pointer(holder, reinterpret_cast<void *>(value));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(mapped(c.get()).empty());
        REQUIRE_OK(pm_check(c.get()));
    };
    auto leads_out = [&](long value) {
        store_pointer(holder, reinterpret_cast<void *>(value));
        REQUIRE(pm_commit(c.get()) == -1);
    };
    /* No user's pages are the first and the last. */
    for (long value : {1L, 4095L, 4096L, 100000L, (1L << 47) - 1, 1L << 47, -1L})
        is_data(value);
    char *base = reinterpret_cast<char *>(holder) - offset_of(c.get(), holder);
    leads_out((long)base + (64 << 20) + 1);
    /* Addresses where containers may lie some day are numbers, but not those where one has been. */
    is_data((long)base - 1);
    std::string path = directory / "other.pm";
    test::Container other = test::open(path, how(Way::Pass));
    auto in_other = (long)make_bytes(other.get(), 64);
    leads_out(in_other);
    other.reset();
    leads_out(in_other);
    void *pages = mmap(nullptr, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    auto page = (long)pages + 4096;
    REQUIRE(munmap((void *)(page - 4096), 4096) == 0);
    REQUIRE(munmap((void *)(page + 4096), 4096) == 0);
    for (long value : {page, page + 4095})
        leads_out(value);
    for (long value : {page - 1, page + 4096})
        is_data(value);
    REQUIRE(munmap((void *)page, 4096) == 0);
    is_data(page);
    store_pointer(holder, base + (64 << 20)); // one past the end
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).size() == 1);
}

TEST_CASE("without room for a map of pointers a commit fails, and changes nothing")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options options = how(Way::Pass);
    options.max_size = 1 << 20;
    test::Container c = test::open(path, options);
    auto *holder = static_cast<Holder *>(make_bytes(c.get(), sizeof(Holder)));
    REQUIRE(pm_setroot(c.get(), holder, 0) == 0);
    REQUIRE_OK(pm_commit(c.get()));
    for (uint64_t size = options.max_size; !pm_malloc(c.get(), size); size -= 64 << 10)
        ;
    store_number(holder, 5);
    REQUIRE_OK(pm_commit(c.get()));
    store_number(holder, 6);
    store_pointer(holder, holder);
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(errno == ENOSPC);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("map of pointers"));
    c.reset();
    c = test::open(path, options);
    holder = static_cast<Holder *>(pm_getroot(c.get()));
    REQUIRE(holder->number == 5);
    REQUIRE(holder->pointer == nullptr);
}

TEST_CASE("a reservation has room for the map of what will be stored")
{
    test::Directory directory;
    pm_options options = how(Way::Pass);
    options.max_size = 1 << 20;
    test::Container c = test::open(directory / "c.pm", options);
    auto *holder = static_cast<Holder *>(make_bytes(c.get(), sizeof(Holder)));
    REQUIRE_OK(pm_reserve(c.get(), sizeof(Holder)));
    for (uint64_t size = options.max_size; !pm_malloc(c.get(), size); size -= 64 << 10)
        ;
    store_pointer(holder, holder);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_setroot(c.get(), holder, 0) == 0);
    REQUIRE(mapped(c.get()).size() == 1);
}

TEST_CASE("a declared pointer stays declared, wherever code that tells no kinds has it lead")
{
    test::Directory directory;
    pm_options options = how(Way::Pass);
    options.foreign_pointers = GENERATE(PM_FOREIGN_ERROR, PM_FOREIGN_IGNORE);
    test::Container c = test::open(directory / "c.pm", options);
    Holder *holder = hold_pointer(c.get());
    Offsets pointer{offset_of(c.get(), &holder->pointer)};
    REQUIRE(mapped(c.get()) == pointer);
    REQUIRE(pm_dirty(holder, sizeof *holder) == 0);
    holder->pointer = GENERATE_REF((void *)&options, (void *)100000);
    bool fails = options.foreign_pointers == PM_FOREIGN_ERROR;
    REQUIRE(pm_commit(c.get()) == (fails ? -1 : 0));
    REQUIRE(mapped(c.get()) == pointer);
    REQUIRE(pm_dirty(holder, sizeof *holder) == 0);
    holder->pointer = holder;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()) == pointer);
}

TEST_CASE("a copy over itself, upwards, takes along that a pointer between two words is in pieces")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    auto *holders = static_cast<Holder *>(root_bytes(c.get(), 0, 4 * sizeof(Holder)));
    REQUIRE_OK(pm_commit(c.get()));
    char *bytes = reinterpret_cast<char *>(holders);
    fill(bytes, 0x5a, 4 * sizeof(void *));
    void *pointer = holders;
    copy(bytes + 20, &pointer, sizeof pointer);
    copy(bytes + 16, bytes + 4, 3 * sizeof pointer); // the last word of it is the pointer
    REQUIRE(holders[2].number == (long)pointer);
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(errno == EINVAL);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("in pieces"));
}

TEST_CASE("pointers that a loop copies in halves fail the commit")
{
    constexpr size_t COUNT = 16; // a loop of vectors takes all of them
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    auto **words = static_cast<void **>(root_bytes(c.get(), 0, 2 * COUNT * sizeof(void *)));
    store_pointers(words, COUNT, words);
    REQUIRE_OK(pm_commit(c.get()));
    copy_halves(words + COUNT, words, COUNT);
    REQUIRE(words[2 * COUNT - 1] == words);
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(errno == EINVAL);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("in pieces"));
}

// Copies the word at `from` to `to`, in the given way.
using CopyWord = void(void *to, const void *from, int way);

static void check_copy_in_pieces(CopyWord *copy_word, int way)
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    auto **words = static_cast<void **>(root_bytes(c.get(), 0, 4 * sizeof(void *)));
    store_pointers(words, 1, words);
    REQUIRE_OK(pm_commit(c.get()));
    CAPTURE(way);
    copy_word(words + 1, words, way);
    REQUIRE(words[1] == words);
    if (pm_commit(c.get()) == 0) {
        REQUIRE((mapped(c.get()) ==
                 Offsets{offset_of(c.get(), &words[0]), offset_of(c.get(), &words[1])}));
        return;
    }
    REQUIRE(errno == EINVAL);
    REQUIRE_THAT(pm_errormsg(), Catch::Contains("in pieces"));
}

TEST_CASE("a pointer that is joined of pieces is a pointer, or fails the commit")
{
    check_copy_in_pieces(copy_joined, GENERATE(range(0, JOIN_WAYS)));
}

TEST_CASE("a pointer of which pieces come in steps is a pointer, or fails the commit")
{
    check_copy_in_pieces(copy_in_steps, GENERATE(range(0, STEP_WAYS)));
}

TEST_CASE("a word of a number and parts of a pointer is data, or fails the commit")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    auto **words = static_cast<void **>(root_bytes(c.get(), 0, 4 * sizeof(void *)));
    store_pointers(words, 1, words);
    REQUIRE_OK(pm_commit(c.get()));
    const int way = GENERATE(range(0, NUMBER_WAYS));
    CAPTURE(way);
    copy_with_number(words + 1, words, way);
    REQUIRE(words[1] > words);
    REQUIRE(words[1] < words + 4);
    if (pm_commit(c.get()) == 0)
        REQUIRE((mapped(c.get()) == Offsets{offset_of(c.get(), words)}));
    else
        REQUIRE_THAT(pm_errormsg(), Catch::Contains("in pieces"));
}

TEST_CASE("a word that keeps half of a pointer is data, however often the other half is stored")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    auto **words = static_cast<void **>(root_bytes(c.get(), 0, 4 * sizeof(void *)));
    store_pointers(words, 2, words);
    put_upper_half(words + 1, words + 2); // zero, as if the word was half an address
    put_upper_half(words + 1, words);
    REQUIRE(words[1] == words);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE((mapped(c.get()) == Offsets{offset_of(c.get(), words)}));
}

TEST_CASE("a number over a pointer is none, whatever code that tells no kinds stores beside it")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, how(Way::Pass));
    hold_pointer(c.get());
    Holder *holder = reopen(c, path);
    bool is_address = GENERATE(true, false);
    auto fill_pointer = [&] {
        if (is_address)
            store_number(reinterpret_cast<Holder *>(&holder->pointer), 99999);
        else
            fill(&holder->pointer, 0x5a, sizeof holder->pointer);
    };
    SECTION("by a page fault")
    {
        holder->number = 1;
        fill_pointer();
    }
    SECTION("announced before")
    {
        REQUIRE(pm_dirty(&holder->number, sizeof holder->number) == 0);
        holder->number = 1;
        fill_pointer();
    }
    SECTION("announced after")
    {
        fill_pointer();
        REQUIRE(pm_dirty(&holder->number, sizeof holder->number) == 0);
        holder->number = 1;
    }
    SECTION("announced after, for all of the object")
    {
        fill_pointer();
        REQUIRE(pm_dirty(holder, sizeof *holder) == 0);
        holder->number = 1;
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::mapped(c.get()).empty());
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("what code that tells no kinds stores after others goes by its value")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, how(Way::Pass));
    hold_pointer(c.get());
    Holder *holder = reopen(c, path);
    Offsets pointer{offset_of(c.get(), &holder->pointer)};
    SECTION("over data, a pointer")
    {
        fill(holder, 0x5a, sizeof *holder);
        REQUIRE(pm_dirty(&holder->pointer, sizeof holder->pointer) == 0);
        holder->pointer = &holder->pointer; // not where it led before
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(mapped(c.get()) == pointer);
    }
    SECTION("over data on a page that a fault has opened, a pointer")
    {
        holder->number = 1;
        fill(&holder->pointer, 0x5a, sizeof holder->pointer);
        holder->pointer = &holder->pointer;
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(mapped(c.get()) == pointer);
    }
    SECTION("over a pointer, one that leads out of the container: a number, perhaps")
    {
        store_pointer(holder, holder);
        REQUIRE(pm_dirty(holder, sizeof *holder) == 0);
        holder->pointer = &pointer;
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::mapped(c.get()).empty());
    }
    SECTION("over half of a pointer, a number")
    {
        store_pointer(holder, holder);
        REQUIRE(pm_dirty(&holder->pointer, 4) == 0);
        uint32_t half;
        memcpy(&half, &holder->pointer, sizeof half);
        half ^= 256 << 20; // further than the container is large
        memcpy(&holder->pointer, &half, sizeof half);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::mapped(c.get()).empty());
    }
    SECTION("over a pointer, bytes")
    {
        store_pointer(holder, holder);
        REQUIRE(pm_dirty(holder, sizeof *holder) == 0);
        memset(holder, 1, sizeof *holder);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::mapped(c.get()).empty());
    }
}

TEST_CASE("what is copied from where code that tells no kinds has stored goes by its value, too")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, how(Way::Pass));
    auto *holder = static_cast<Holder *>(root_bytes(c.get(), 0, 8 * sizeof(Holder)));
    store_pointer(&holder[0], holder);
    store_pointer(&holder[1], holder);
    REQUIRE_OK(pm_commit(c.get()));
    holder = reopen(c, path);
    Offsets pointers{offset_of(c.get(), &holder[0].pointer),
                     offset_of(c.get(), &holder[1].pointer)};
    // Into the container, but to no object: a number, if nobody says otherwise.
    char *number = const_cast<char *>(test::base_of(c.get())) + (48 << 20);
    bool is_pointer = GENERATE(false, true), same_line = GENERATE(false, true);
    void *value = is_pointer ? static_cast<void *>(&holder[1]) : number;
    Holder *to = &holder[same_line ? 2 : 6];
    SECTION("announced")
    {
        store_number(holder, 5); // so that no fault opens the page
        REQUIRE(pm_dirty(&holder->pointer, sizeof holder->pointer) == 0);
        holder->pointer = value;
    }
    SECTION("by a page fault")
    {
        holder->pointer = value;
    }
    copy(to, holder, 2 * sizeof *holder);
    if (is_pointer)
        pointers.insert(offset_of(c.get(), &to[0].pointer));
    pointers.insert(offset_of(c.get(), &to[1].pointer));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()) == pointers);
}

TEST_CASE("bytes over pointers are none, in a line, in pages, and in more than has kinds")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    size_t count = GENERATE(6, 8, 3 * 4096 / 8, ((1 << 20) + (3 << 15)) / 8);
    auto **words = static_cast<void **>(make_bytes(c.get(), count * sizeof(void *)));
    uint64_t first = offset_of(c.get(), words), last = first + (count - 1) * sizeof(void *);
    size_t inner = (count - 2) * sizeof(void *);
    auto map_after = [&](int byte) {
        fill(words + 1, byte, inner);
        REQUIRE_OK(pm_commit(c.get()));
        return test::mapped(c.get());
    };
    store_pointers(words, count, words);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::mapped(c.get()).size() == count);
    REQUIRE(map_after(0).size() == count);
    REQUIRE((map_after(0x5a) == Offsets{first, last})); // too many to be printed
    store_pointers(words, count, words);                // not by the next commit
    REQUIRE((map_after(0x5a) == Offsets{first, last}));
}

TEST_CASE("a check in a transaction says nothing of what the transaction stored over pointers")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    Holder *holder = hold_pointer(c.get());
    fill(&holder->pointer, 0x39, sizeof holder->pointer);
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(mapped(c.get()).empty());
}

TEST_CASE("a rollback forgets what was stored, and marks of the program's own count as stores")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how(Way::Pass));
    auto *holder = static_cast<Holder *>(make_bytes(c.get(), sizeof(Holder)));
    REQUIRE(pm_setroot(c.get(), holder, 0) == 0);
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t first = offset_of(c.get(), holder), second = offset_of(c.get(), &holder->pointer);
    store_pointer(holder, holder);
    REQUIRE_OK(pm_rollback(c.get()));
    store_number(holder, (long)holder);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).empty());
    store_number(holder, (long)holder + 8);
    REQUIRE(pm_mark_pointer(&holder->number) == 0);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()) == Offsets{first});
    REQUIRE(pm_mark_pointer(&holder->number) == 0);
    REQUIRE_OK(pm_commit(c.get()));
    // By code that tells nothing, announced or not: declared pointers stay declared.
    REQUIRE(pm_dirty(holder, sizeof *holder) == 0);
    holder->number = (long)holder;
    holder->pointer = holder;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()) == Offsets{first});
    store_pointer(holder, holder);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()) == Offsets{first, second});
    REQUIRE(pm_mark_data(holder, sizeof *holder) == 0);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(c.get()).empty());
}
