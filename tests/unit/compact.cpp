// pm_compact(): whatever it moves, all pointers lead to what they led to; and how much it gains.
#include "unit/mapped.hpp"
#include "unit/web.hpp"

#include "common/fixture.hpp"
#include "common/format.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace
{

pm_options how()
{
    web::recorded = test::stores();
    return test::small(PM_CREATE | PM_MOVABLE | (test::mode() == "undo" ? PM_UNSAFE_POWER : 0));
}

// In memory, or on an ordinary file, where home is a copy.
std::string any_parent()
{
    return GENERATE(as<std::string>(), "/dev/shm", "/var/tmp");
}

struct pm_compacted compact(pm_container *c, pm_moved *moved = nullptr, void *context = nullptr)
{
    struct pm_compacted result{};
    result.size = sizeof result;
    REQUIRE_OK(pm_compact(c, moved, context, &result));
    return result;
}

// A container in which of so many cells every `nth` has stayed.
test::Container fragmented(const std::string &path, uint64_t cells, uint64_t nth)
{
    test::Container c = test::open(path, how());
    web::Random random(cells);
    web::begin(c.get());
    web::add_some(c.get(), random, cells);
    REQUIRE_OK(pm_commit(c.get()));
    web::remove(c.get(), [&](const web::Cell *) { return random() % nth != 0; });
    REQUIRE_OK(pm_commit(c.get()));
    return c;
}

// Whether a map of pointers keeps the file long, though a segment before it is free.
bool is_long_for_a_map(const std::string &path)
{
    bool is_free = false, is_map = false;
    for (uint64_t i = 0; i < std::filesystem::file_size(path) / how().segment_size; i++) {
        const auto kind = segment_kind(test::read_word(path, FORMAT_TABLE + 8 * i));
        is_free |= kind == SEGMENT_FREE;
        is_map = kind == SEGMENT_MAP;
    }
    return is_free && is_map;
}

// That all is there, and stays so when there is more.
void require_goes_on(pm_container *c, uint64_t cells)
{
    web::check(c);
    web::Random random(1);
    web::add_some(c, random, cells);
    REQUIRE_OK(pm_commit(c));
    web::check(c);
}

bool cutting_fails; // and nothing else that sets a length

} // namespace

extern "C" {

int __real_ftruncate(int fd, off_t length);

int __wrap_ftruncate(int fd, off_t length)
{
    struct stat st;
    if (cutting_fails && fstat(fd, &st) == 0 && st.st_size > length) {
        errno = EIO;
        return -1;
    }
    return __real_ftruncate(fd, length);
}
}

TEST_CASE("what is left moves together, and the file becomes smaller", "[home]")
{
    uint64_t nth = GENERATE(1, 2, 4, 10, 1000);
    test::Directory directory(nth == 10 ? any_parent() : "/dev/shm");
    std::string path = directory / "c.pm";
    INFO("every " << nth << "th in " << path);
    test::Container c = fragmented(path, 9000, nth);
    struct pm_compacted done = compact(c.get());
    web::check(c.get());
    CAPTURE(done.objects_moved, done.bytes_moved, done.pointers_redirected, done.segments_freed,
            done.commits, done.before.data_bytes, done.after.data_bytes, done.before.file_bytes,
            done.after.file_bytes, done.before.fragmentation, done.after.fragmentation);
    REQUIRE(done.before.object_bytes == done.after.object_bytes);
    REQUIRE(done.after.data_bytes <= done.before.data_bytes);
    REQUIRE(done.after.file_bytes == std::filesystem::file_size(path));
    uint64_t segments = done.after.file_bytes / how().segment_size;
    REQUIRE(test::stats(c.get()).segments_free * 6 <=
            segments); /* runs of large objects are long */
    REQUIRE(done.after.file_bytes < done.before.file_bytes);
    if (nth > 2) {
        REQUIRE(done.objects_moved > 0);
        REQUIRE(done.pointers_redirected > done.objects_moved);
        REQUIRE(done.segments_freed > 0);
        REQUIRE(done.after.fragmentation < done.before.fragmentation);
    }
    SECTION("once")
    {
        struct pm_compacted again = compact(c.get());
        REQUIRE(again.objects_moved * 10 <= done.objects_moved);
        REQUIRE(again.after.data_bytes <= done.after.data_bytes);
        REQUIRE(again.after.file_bytes <= done.after.file_bytes);
        web::check(c.get());
    }
    SECTION("for good")
    {
        c.reset();
        REQUIRE(done.after.file_bytes == std::filesystem::file_size(path)); // whatever was to be written still
        REQUIRE_FALSE(is_long_for_a_map(path));
        c = test::open(path, how());
        REQUIRE_FALSE(test::stats(c.get()).recovered);
        web::check(c.get());
    }
    SECTION("wherever it is opened")
    {
        c.reset();
        std::filesystem::copy_file(path, directory / "copy.pm");
        c = test::open(path, how());
        test::Container copy = test::open(directory / "copy.pm", how());
        web::check(copy.get());
        REQUIRE(test::stats(copy.get()).pointers_moved > 0);
    }
    SECTION("and can grow again")
    {
        web::Random random(7);
        for (int i = 0; i < 5; i++) {
            web::add_some(c.get(), random, 500);
            REQUIRE_OK(pm_commit(c.get()));
            web::check(c.get());
        }
        c.reset();
        c = test::open(path, how());
        web::check(c.get());
    }
}

TEST_CASE("a container that lies elsewhere than its pointers mean")
{
    test::Directory directory(any_parent());
    std::string path = directory / "c.pm", other = directory / "copy.pm";
    fragmented(path, 3000, 5).reset();
    std::filesystem::copy_file(path, other);
    {
        test::Container c = test::open(path, how()), copy = test::open(other, how());
        struct pm_compacted done = compact(copy.get());
        REQUIRE(done.segments_freed > 0);
        REQUIRE((done.after.file_bytes < done.before.file_bytes || test::engine() == "log"));
        web::check(c.get());
        require_goes_on(copy.get(), 1000); /* the file grows again */
    }
    web::check(test::open(other, how()).get());
}

TEST_CASE("pointers kept outside can follow")
{
    test::Directory directory;
    test::Container c = fragmented(directory / "c.pm", 3000, 5);
    struct Outside {
        std::map<web::Cell *, web::Cell *> cells; // by where they are: where they were
        std::map<web::Cell *, uint64_t> numbers;  // by where they were
        uint64_t moved = 0, bytes = 0;
    } outside;
    for (web::Cell *cell : web::cells(c.get())) {
        outside.cells[cell] = cell;
        outside.numbers[cell] = cell->number;
    }
    auto moved = [](void *context, void *from, void *to, size_t bytes) {
        auto *o = static_cast<Outside *>(context);
        o->moved++;
        o->bytes += bytes;
        auto cell = o->cells.extract(static_cast<web::Cell *>(from));
        if (!cell) // the root
            return;
        cell.key() = static_cast<web::Cell *>(to);
        if (!o->cells.insert(std::move(cell)).inserted)
            throw std::runtime_error("moved to where one is");
    };
    struct pm_compacted done = compact(c.get(), moved, &outside);
    REQUIRE(outside.moved == done.objects_moved);
    REQUIRE(outside.bytes == done.bytes_moved);
    REQUIRE(done.commits > 1);
    for (auto [cell, from] : outside.cells)
        REQUIRE(cell->number == outside.numbers[from]);
    web::check(c.get());
}

TEST_CASE("objects stay aligned")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how());
    struct Table {
        void *of[12][200];
    };
    auto *table = static_cast<Table *>(pm_calloc(c.get(), 1, sizeof(Table)));
    REQUIRE_OK(pm_mark_pointers(&table->of[0][0], std::size(table->of) * std::size(table->of[0])));
    REQUIRE_OK(pm_setroot(c.get(), table, 0));
    for (int j = 0; j < 200; j++)
        for (unsigned i = 0; i < std::size(table->of); i++)
            if (j < 8 || i < 10) // above a page they take whole segments
                REQUIRE((table->of[i][j] = pm_aligned_alloc(c.get(), size_t(16) << i, 16 << i)));
    for (int j = 0; j < 200; j++)
        for (auto &of : table->of)
            if (j % 7 != 0 && of[j]) {
                REQUIRE_OK(pm_free(of[j]));
                of[j] = nullptr;
            }
    REQUIRE(compact(c.get()).objects_moved > 0);
    table = static_cast<Table *>(pm_getroot(c.get()));
    for (int j = 0; j < 200; j += 7)
        for (unsigned i = 0; i < std::size(table->of); i++)
            REQUIRE(reinterpret_cast<uintptr_t>(table->of[i][j]) % (size_t(16) << i) == 0);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("what was not committed is, before anything moves")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = fragmented(path, 300, 3);
    web::Random random(1);
    web::add_some(c.get(), random, 100);
    uint64_t cells = web::root(c.get())->cells;
    compact(c.get());
    REQUIRE_OK(pm_rollback(c.get()));
    web::check(c.get());
    REQUIRE(web::root(c.get())->cells == cells);
}

TEST_CASE("a map just behind where all would fit moves too", "[home]")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how());
    auto *pointer = static_cast<void **>(pm_calloc(c.get(), 1, sizeof(void *)));
    void *large = pm_malloc(c.get(), how().segment_size);
    REQUIRE(pointer);
    REQUIRE(large);
    REQUIRE_OK(pm_setroot(c.get(), pointer, 0));
    REQUIRE_OK(pm_mark_pointer(pointer)); // its map comes behind the large object
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(large));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).segments_free > 0);
    compact(c.get());
    REQUIRE(test::stats(c.get()).segments_free == 0);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a map stays whose only pointer is the last that it has room for")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how());
    const uint64_t segment = how().segment_size, group = MAP_GROUP_SEGMENTS * segment;
    char *object;
    do
        REQUIRE((object = static_cast<char *>(pm_malloc(c.get(), segment))));
    while (test::offset_of(c.get(), object) + segment < group);
    REQUIRE(test::offset_of(c.get(), object) + segment == group);
    void **last = reinterpret_cast<void **>(object + segment) - 1;
    REQUIRE_OK(pm_mark_pointer(last));
    *last = object;
    REQUIRE_OK(pm_setroot(c.get(), object, 0));
    compact(c.get());
    REQUIRE(pm_getroot(c.get()) == object);
    REQUIRE(pm_next_pointer(object, object + segment) == last);
}

TEST_CASE("nothing to move", "[home]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, how());
    struct pm_compacted done = compact(c.get());
    REQUIRE((done.objects_moved == 0 && done.after.data_bytes == 0));
    REQUIRE(done.after.fragmentation == 0);
    REQUIRE(done.after.file_bytes == 3 * how().segment_size); // metadata, two halves of the log
    SECTION("ever") {}
    SECTION("yet")
    {
        web::begin(c.get());
        web::Random random(1);
        web::add_some(c.get(), random, 100);
    }
    SECTION("any more")
    {
        web::begin(c.get());
        web::Random random(1);
        web::add_some(c.get(), random, 500);
        REQUIRE_OK(pm_clear(c.get()));
        REQUIRE(compact(c.get()).after.file_bytes == done.after.file_bytes);
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, how());
    if (web::root(c.get()))
        web::check(c.get());
}

TEST_CASE("a root that moves is a pointer redirected, though none in the map")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how());
    std::vector<void *> before(5000);
    for (void *&p : before)
        REQUIRE((p = pm_malloc(c.get(), 64)));
    auto *root = static_cast<uint64_t *>(pm_malloc(c.get(), 64));
    REQUIRE(root);
    REQUIRE_OK(pm_dirty(root, sizeof *root));
    *root = 77;
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    for (void *p : before)
        REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(c.get()));
    struct pm_compacted done = compact(c.get());
    REQUIRE(pm_getroot(c.get()) != root);
    REQUIRE(*static_cast<uint64_t *>(pm_getroot(c.get())) == 77);
    REQUIRE(done.objects_moved == 1);
    REQUIRE(done.pointers_redirected == 1);
}

TEST_CASE("a container that is full can be compacted")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options o = how();
    o.max_size = 4 << 20;
    test::Container c = test::open(path, o);
    web::begin(c.get());
    while (true) {
        try {
            web::add(c.get(), 10, web::root(c.get())->first);
        } catch (const std::runtime_error &) {
            REQUIRE(test::failed_with(ENOSPC));
            break;
        }
        if (web::root(c.get())->cells % 256 == 0 && pm_commit(c.get()) != 0) {
            REQUIRE(test::failed_with(ENOSPC));
            REQUIRE_OK(pm_rollback(c.get()));
            break;
        }
    }
    REQUIRE_OK(pm_commit(c.get()));
    // Piece by piece, since the log cannot grow.
    uint64_t kept = web::root(c.get())->cells;
    for (uint64_t from = 0; from < kept; from += 64) {
        web::remove(c.get(), [&](const web::Cell *cell) {
            return cell->number >= from && cell->number < from + 64 && cell->number % 4 != 0;
        });
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE(compact(c.get()).segments_freed > 20);
    require_goes_on(c.get(), 100);
}

TEST_CASE("pointers that lead out of the container are no reason to refuse it, and stay as they are")
{
    test::Directory directory;
    pm_options options = how();
    options.foreign_pointers = PM_FOREIGN_IGNORE;
    test::Container c = test::open(directory / "c.pm", options);
    web::Random random(1);
    web::begin(c.get());
    web::add_some(c.get(), random, 3000);
    struct Foreign {
        int *leads_out;
        char filling[24 << 10];
    };
    auto *kept = static_cast<Foreign *>(pm_malloc_typed(c.get(), PM_TYPE(Foreign, leads_out), 1));
    REQUIRE(kept);
    const auto outside = std::make_unique<int>();
    kept->leads_out = outside.get();
    REQUIRE_OK(pm_commit(c.get()));
    web::remove(c.get(), [&](const web::Cell *) { return random() % 4 != 0; });
    auto follow = [](void *context, void *from, void *to, size_t) {
        auto **object = static_cast<Foreign **>(context);
        if (from == *object)
            *object = static_cast<Foreign *>(to);
    };
    REQUIRE(compact(c.get(), follow, &kept).objects_moved > 0);
    REQUIRE(kept->leads_out == outside.get());
    if (!web::recorded) { // what was recorded is data
        REQUIRE(pm_check(c.get()) == -1);
        REQUIRE(test::failed_with(EBADMSG, {"leads out of the container"}));
    }
    kept->leads_out = nullptr;
    web::check(c.get());
}

TEST_CASE("with threads that may store during commits")
{
    if (!test::concurrently())
        return;
    test::Directory directory;
    std::string path = directory / "c.pm";
    fragmented(path, 1000, 4).reset();
    pm_options o = how();
    o.concurrent_stores = true;
    test::Container c = test::open(path, o);
    REQUIRE(compact(c.get()).segments_freed > 0);
    require_goes_on(c.get(), 100);
}

TEST_CASE("what has moved to where another slab was moves no more", "[home]")
{
    // Seven objects a slab. In the first four slabs there is a hole each, for single objects only. The
    // fifth slab has single objects, and becomes free. The sixth has a pair, which goes to its place.
    constexpr uint64_t SLOTS = 7, SLABS = 6, BYTES = 8768;
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how());
    auto **all = static_cast<char **>(pm_calloc(c.get(), SLABS * SLOTS, sizeof(char *)));
    REQUIRE(all);
    REQUIRE_OK(pm_mark_pointers(all, SLABS * SLOTS));
    REQUIRE_OK(pm_setroot(c.get(), all, 0));
    for (uint64_t i = 0; i < SLABS * SLOTS; i++) {
        all[i] = static_cast<char *>(pm_malloc(c.get(), BYTES));
        REQUIRE(all[i]);
        memset(all[i], static_cast<int>(i + 1), BYTES);
        REQUIRE((i % SLOTS == 0 || all[i] == all[i - 1] + BYTES)); // so they are of one slab
        REQUIRE((i % SLOTS != 0 || i == 0 || all[i] > all[i - 1] + BYTES));
    }
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t left = 0;
    for (uint64_t i = 0; i < SLABS * SLOTS; i++) {
        const uint64_t slab = i / SLOTS, slot = i % SLOTS;
        const bool stays = slab < 4 ? slot != 3 : slab == 4 ? slot == 0 || slot == 2 : slot < 2;
        left += stays;
        if (!stays) {
            REQUIRE_OK(pm_free(all[i]));
            all[i] = nullptr;
        }
    }
    REQUIRE_OK(pm_commit(c.get()));
    struct pm_compacted done = compact(c.get());
    REQUIRE(done.objects_moved >= 4);
    all = static_cast<char **>(pm_getroot(c.get()));
    for (uint64_t i = 0; i < SLABS * SLOTS; i++)
        if (all[i]) {
            INFO("object " << i);
            REQUIRE(pm_usable_size(all[i]) == BYTES);
            REQUIRE(std::all_of(all[i], all[i] + BYTES,
                                [&](char byte) { return byte == static_cast<char>(i + 1); }));
            left--;
        }
    REQUIRE(left == 0);
    REQUIRE_OK(pm_check(c.get()));
}

// The end of an object may be the end of the file.
TEST_CASE("a pointer to the end of the file follows the object that ends there")
{
    constexpr uint64_t SEGMENT = 64 << 10;
    test::Directory directory;
    pm_options options = how();
    options.max_size = 2 << 20;
    test::Container c = test::open(directory / "c.pm", options);
    auto **root = static_cast<char **>(pm_calloc(c.get(), 2, sizeof(char *)));
    REQUIRE(root);
    REQUIRE_OK(pm_mark_pointers(root, 2));
    REQUIRE_OK(pm_setroot(c.get(), root, 0));
    std::vector<char *> all;
    while (auto *p = static_cast<char *>(pm_malloc(c.get(), SEGMENT)))
        all.push_back(p);
    char *last = *std::max_element(all.begin(), all.end());
    REQUIRE(test::offset_of(c.get(), last) + SEGMENT == options.max_size);
    root[0] = last;
    root[1] = last + SEGMENT;
    for (char *p : all)
        if (p != last)
            REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(c.get()));
    compact(c.get());
    root = static_cast<char **>(pm_getroot(c.get()));
    REQUIRE(root[0] != last);
    REQUIRE(root[1] == root[0] + SEGMENT);
}

TEST_CASE("what cannot be compacted")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    struct pm_compacted result{};
    result.size = sizeof result;
    SECTION("nothing")
    {
        REQUIRE(pm_compact(nullptr, nullptr, nullptr, nullptr) == -1);
        REQUIRE(test::failed_with(EINVAL));
    }
    SECTION("a container whose pointers nobody knows")
    {
        test::Container c = test::open(path, test::small());
        REQUIRE(pm_compact(c.get(), nullptr, nullptr, &result) == -1);
        REQUIRE(test::failed_with(ENOTSUP, {path.c_str(), "PM_MOVABLE"}));
    }
    SECTION("or one that somebody wrote who did not vouch for his")
    {
        fragmented(path, 100, 2).reset();
        test::open(path, test::small()).reset();
        test::Container c = test::open(path, how());
        REQUIRE(pm_compact(c.get(), nullptr, nullptr, &result) == -1);
        REQUIRE(test::failed_with(ENOTSUP, {path.c_str(), "PM_MOVABLE"}));
    }
    SECTION("one that is only read")
    {
        fragmented(path, 100, 2).reset();
        test::Container c = test::open(path, test::options(PM_READONLY));
        REQUIRE(pm_compact(c.get(), nullptr, nullptr, &result) == -1);
        REQUIRE(test::failed_with(EROFS));
    }
    SECTION("for a program compiled with another header")
    {
        test::Container c = fragmented(path, 100, 2);
        for (size_t size : {size_t(0), sizeof result + 1}) {
            result.size = size;
            REQUIRE(pm_compact(c.get(), nullptr, nullptr, &result) == -1);
            REQUIRE(test::failed_with(EINVAL));
        }
        result.size = offsetof(struct pm_compacted, bytes_moved);
        result.bytes_moved = 77;
        REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, &result));
        REQUIRE((result.objects_moved > 0 && result.bytes_moved == 77));
    }
}

TEST_CASE("private copies of what is cut off count no more")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", how());
    std::vector<void *> objects(2000);
    for (void *&p : objects)
        REQUIRE((p = pm_calloc(c.get(), 1, 4000)));
    REQUIRE_OK(pm_commit(c.get()));
    for (void *p : objects)
        REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(c.get()));
    compact(c.get());
    const struct pm_stats is = test::stats(c.get());
    REQUIRE(is.pages_private <= is.file_bytes / 4096);
}

TEST_CASE("a compaction that could not cut off the file does so when it is tried again", "[home]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = fragmented(path, 5000, 10);
    const uint64_t before = std::filesystem::file_size(path);
    cutting_fails = true;
    const int result = pm_compact(c.get(), nullptr, nullptr, nullptr);
    cutting_fails = false;
    REQUIRE(result == -1);
    REQUIRE(test::failed_with(EIO));
    REQUIRE(std::filesystem::file_size(path) == before);
    compact(c.get());
    REQUIRE(std::filesystem::file_size(path) < before / 2);
    REQUIRE(std::filesystem::file_size(path) == test::stats(c.get()).file_bytes);
    require_goes_on(c.get(), 100);
}
