// A call that failed has changed nothing, on a full disk or at max_size. The file has its length and its
// blocks, the log and the pointer map have their segments. Each call is tried with one segment more of
// room, until it succeeds. So it fails at each place where it may need room.
#include "common/compiled.hpp"
#include "common/process.hpp"
#include "system/disk.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace
{

constexpr uint64_t SEGMENT = 64 << 10, MiB = 1 << 20; // SEGMENT: of test::small()

bool fills_half; // then there is no more room

} // namespace

extern "C" {

int __real_fallocate(int fd, int mode, off_t offset, off_t size);

// As ext4: it keeps what there was room for.
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
    if (!fills_half || mode != 0)
        return __real_fallocate(fd, mode, offset, size);
    __real_fallocate(fd, mode, offset, size / 2);
    errno = ENOSPC;
    return -1;
}
}

namespace
{

// All that a call may take.
struct Taken {
    uint64_t length, blocks, free_on_disk;
    uint64_t file_bytes, log, map, data, free;
    bool operator==(const Taken &) const = default;
};

std::ostream &operator<<(std::ostream &out, const Taken &t)
{
    return out << "length " << t.length << ", blocks " << t.blocks << ", free on disk "
               << t.free_on_disk << ", file_bytes " << t.file_bytes << ", segments: log " << t.log
               << ", map " << t.map << ", data " << t.data << ", free " << t.free;
}

Taken taken(const test::Disk &disk, const std::string &path, pm_container *c)
{
    struct stat st;
    REQUIRE(stat(path.c_str(), &st) == 0);
    Taken t{(uint64_t)st.st_size, (uint64_t)st.st_blocks, disk.free_bytes(), 0, 0, 0, 0, 0};
    if (c) {
        struct pm_stats s = test::stats(c);
        t.file_bytes = s.file_bytes;
        t.log = s.segments_log;
        t.map = s.segments_map;
        t.data = s.segments_data;
        t.free = s.segments_free;
    }
    return t;
}

// Take the file's free segments, so that all room has to come from the disk.
void exhaust(pm_container *c)
{
    while (test::stats(c).segments_free > 0)
        REQUIRE(pm_malloc(c, SEGMENT));
}

// How often it failed before it succeeded.
unsigned sweep(test::Disk &disk, const std::string &path, pm_container *c,
               const std::function<bool()> &call)
{
    disk.fill();
    for (unsigned failures = 0;; failures++) {
        REQUIRE(failures < 1000);
        Taken before = taken(disk, path, c);
        INFO("with " << before.free_on_disk << " bytes free");
        if (call())
            return failures;
        REQUIRE(test::failed_with(ENOSPC, {path.c_str()}));
        REQUIRE(taken(disk, path, c) == before);
        REQUIRE_OK(pm_check(c));
        disk.free(SEGMENT);
    }
}

struct Large {
    Large *next;
    char filling[SEGMENT - sizeof(Large *)];
};

// Its root has so many pages, all of which are committed.
test::Container open_on(const test::Disk &disk, std::string &path, uint64_t pages)
{
    path = disk / "c.pm";
    return test::open_with_pages(path, pages, test::small(PM_CREATE | PM_MOVABLE));
}

void store_everywhere(pm_container *c, uint64_t pages, uint64_t value)
{
    for (uint64_t i = 0; i < pages; i++)
        test::page_word(c, i) = value;
}

} // namespace

TEST_CASE("reservations and allocations that fail keep nothing")
{
    test::Disk disk(64 * MiB);
    std::string path;
    test::Container c = open_on(disk, path, 16);
    exhaust(c.get());
    void *object = pm_malloc(c.get(), 100);
    REQUIRE(object);

    SECTION("of the whole disk and more")
    {
        Taken before = taken(disk, path, c.get());
        REQUIRE(pm_reserve(c.get(), 60 * MiB) == -1);
        REQUIRE(test::failed_with(ENOSPC, {path.c_str()}));
        REQUIRE(taken(disk, path, c.get()) == before);
        REQUIRE(pm_malloc(c.get(), 3 * MiB));
        disk.fill();
    }
    SECTION("of log for some pages")
    {
        REQUIRE(sweep(disk, path, c.get(), [&] { return pm_reserve(c.get(), MiB) == 0; }) > 10);
    }
    SECTION("of an object")
    {
        REQUIRE(sweep(disk, path, c.get(), [&] { return pm_malloc(c.get(), MiB) != nullptr; }) > 10);
    }
    SECTION("of zeros")
    {
        REQUIRE(sweep(disk, path, c.get(), [&] { return pm_calloc(c.get(), 16, SEGMENT); }) > 10);
    }
    SECTION("of an object that grows")
    {
        REQUIRE(sweep(disk, path, c.get(), [&] { return pm_realloc(object, MiB); }) > 10);
    }
    SECTION("of an object that grows, and the map of its pointers")
    {
        auto *large = static_cast<char *>(pm_malloc(c.get(), 4 * MiB));
        REQUIRE(large);
        REQUIRE_OK(pm_mark_pointers(large + 4 * MiB - 4096, 1));
        memset(large + 4 * MiB - 4096, 0, 8);
        exhaust(c.get());
        REQUIRE(sweep(disk, path, c.get(), [&] { return pm_realloc(large, 9 * MiB); }) > 100);
    }
    SECTION("of objects and the maps of their pointers")
    {
        unsigned failures = sweep(disk, path, c.get(), [&] {
            return pm_malloc_typed(c.get(), PM_TYPE(Large, next), 9 * 16) != nullptr;
        });
        REQUIRE(failures > 144);
    }
    SECTION("of a small object and its map")
    {
        struct Small {
            Small *next;
            char filling[2000];
        };
        REQUIRE(sweep(disk, path, c.get(), [&] {
                    return pm_malloc_typed(c.get(), PM_TYPE(Small, next), 1) != nullptr;
                }) == 2);
    }
    SECTION("of maps")
    {
        auto *large = static_cast<char *>(pm_malloc(c.get(), 8 * MiB));
        REQUIRE(large);
        memset(large, 0, 8 * MiB);
        exhaust(c.get());
        unsigned failures = sweep(disk, path, c.get(), [&] {
            REQUIRE(pm_next_pointer(large, large + 8 * MiB) == nullptr);
            return pm_mark_pointers(large, MiB) == 0;
        });
        REQUIRE(failures >= 3);
    }
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_OK(pm_rollback(c.get()));
    disk.free_all();
    store_everywhere(c.get(), 16, 3);
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options());
    REQUIRE(test::page_word(c.get(), 15) == 3);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("an announcement that fails keeps nothing", "[undo]")
{
    const uint64_t pages = 300;
    test::Disk disk(64 * MiB);
    std::string path;
    test::Container c = open_on(disk, path, pages);
    exhaust(c.get());
    REQUIRE(sweep(disk, path, c.get(), [&] {
                return pm_dirty(pm_getroot(c.get()), pages * 4096) == 0;
            }) > 10);
    disk.free_all();
    REQUIRE_OK(pm_commit(c.get()));
}

// Under undo a record that lists 45 MiB of pages; under redo one that has a line of each of 20 MiB.
TEST_CASE("a commit that fails keeps nothing")
{
    const uint64_t pages = 20 * MiB / 4096;
    test::Disk disk(64 * MiB);
    std::string path;
    test::Container c = open_on(disk, path, test::mode() == "undo" ? 16 : pages);
    const uint64_t epoch = test::stats(c.get()).epoch;
    if (test::mode() == "undo") {
        char *fresh = static_cast<char *>(pm_malloc(c.get(), 45 * MiB));
        REQUIRE(fresh);
        for (uint64_t i = 0; i < 45 * MiB; i += 4096)
            fresh[i] = 1;
    } else {
        store_everywhere(c.get(), pages, 1);
    }
    exhaust(c.get());
    REQUIRE(sweep(disk, path, c.get(), [&] { return pm_commit(c.get()) == 0; }) > 0);
    REQUIRE(test::stats(c.get()).epoch == epoch + 1);
    REQUIRE_OK(pm_check(c.get()));
}

// Maps are made by the commit itself, for pointers that compiled code has stored.
TEST_CASE("a commit that fails keeps no map of pointers", "[stores]")
{
    const uint64_t pages = 20 * MiB / 4096;
    test::Disk disk(64 * MiB);
    std::string path;
    test::Container c = open_on(disk, path, pages);
    auto *words = static_cast<char **>(pm_getroot(c.get()));
    for (uint64_t i = 0; i < pages; i++)
        compiled::put(words[i * 512], reinterpret_cast<char *>(words));
    exhaust(c.get());
    REQUIRE(sweep(disk, path, c.get(), [&] {
                return pm_commit(c.get()) == 0;
            }) > 6); // maps of 20 MiB of data
    REQUIRE(pm_next_pointer(words, words + pages * 512) == reinterpret_cast<void **>(words));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a commit that fails leaves discovered objects on the heap, and keeps nothing")
{
    const compiled::Module module;
    test::Disk disk(64 * MiB);
    std::string path = disk / "c.pm";
    pm_options how = test::small(PM_CREATE | PM_DISCOVER | PM_VOUCHED);
    how.tracker = PM_TRACKER_FAULTS; // which it implies otherwise
    how.engine = PM_ENGINE_REDO;
    test::Container c = test::open(path, how);
    struct Node {
        Node *next;
        char filling[100000];
    };
    Node *first = nullptr;
    for (int i = 0; i < 50; i++) {
        auto *node = compiled::make<Node>();
        compiled::put(node->next, first);
        first = node;
    }
    REQUIRE_OK(pm_setroot(c.get(), first, 0));
    unsigned failures = sweep(disk, path, c.get(), [&] {
        bool committed = pm_commit(c.get()) == 0;
        REQUIRE(pm_contains(c.get(), pm_getroot(c.get())) == committed);
        return committed;
    });
    REQUIRE(failures > 90);
    int count = 0;
    for (auto *node = static_cast<Node *>(pm_getroot(c.get())); node; node = node->next, count++)
        REQUIRE(pm_contains(c.get(), node));
    REQUIRE(count == 50);
}

TEST_CASE("a compaction that fails makes the file no longer")
{
    const uint64_t count = 4000;
    test::Disk disk(64 * MiB);
    std::string path = disk / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    // All lead to the last, which is moved first: so the log needs much for a single object.
    struct Node {
        Node *next, *last;
        char filling[500];
    };
    std::vector<Node *> gaps, kept;
    for (uint64_t i = 0; i < count; i++) {
        auto *node = static_cast<Node *>(pm_malloc_typed(c.get(), PM_TYPE(Node, next, last), 1));
        REQUIRE(node);
        if (i % 3 == 0) {
            kept.push_back(node);
            compiled::put(node->next, static_cast<Node *>(pm_getroot(c.get())));
            REQUIRE_OK(pm_setroot(c.get(), node, 0));
        } else {
            gaps.push_back(node);
        }
        if (i % 500 == 499)
            REQUIRE_OK(pm_commit(c.get()));
    }
    for (Node *node : kept)
        compiled::put(node->last, kept.back());
    for (Node *node : gaps)
        REQUIRE_OK(pm_free(node));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options(PM_MOVABLE));
    for (int i = 0; i < 60; i++) { // what the log needed is given back by and by
        compiled::put(static_cast<Node *>(pm_getroot(c.get()))->filling[0], (char)i);
        REQUIRE_OK(pm_commit(c.get()));
    }
    disk.fill();
    exhaust(c.get());
    REQUIRE_OK(pm_commit(c.get()));
    int failures = 0;
    for (; failures < 200; failures++) {
        Taken before = taken(disk, path, c.get());
        bool compacted = pm_compact(c.get(), nullptr, nullptr, nullptr) == 0;
        Taken after = taken(disk, path, c.get());
        REQUIRE(after.length <= before.length);
        REQUIRE(after.blocks <= before.blocks);
        REQUIRE_OK(pm_check(c.get()));
        if (compacted)
            break;
        REQUIRE(test::failed_with(ENOSPC));
        disk.free(SEGMENT);
    }
    REQUIRE(failures < 200);
    if (test::mode() == "undo")
        REQUIRE(failures > 0);
}

TEST_CASE("at max_size calls that fail keep nothing")
{
    test::Disk disk(64 * MiB);
    std::string path = disk / "c.pm";
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    how.max_size = 6 * MiB;
    test::Container c = test::open_with_pages(path, 256, how);
    auto fails = [&](auto call) {
        Taken before = taken(disk, path, c.get());
        REQUIRE_FALSE(call());
        REQUIRE(test::failed_with(ENOSPC, {"max_size"}));
        REQUIRE(taken(disk, path, c.get()) == before);
        REQUIRE_OK(pm_check(c.get()));
    };
    fails([&] { return pm_reserve(c.get(), 8 * MiB) == 0; });
    fails([&] { return pm_reserve(c.get(), 6 * MiB) == 0; });
    fails([&] { return pm_malloc(c.get(), 5 * MiB); });
    fails([&] { return pm_calloc(c.get(), 5, MiB); });
    fails([&] { return pm_realloc(pm_getroot(c.get()), 5 * MiB); });
    fails([&] { return pm_malloc_typed(c.get(), PM_TYPE(Large, next), 80); });
    // One that fits but for the map of its pointers.
    uint64_t fits = 80;
    while (void *p = pm_malloc(c.get(), fits * SEGMENT)) {
        REQUIRE_OK(pm_free(p));
        fits++;
    }
    while (!pm_malloc(c.get(), fits * SEGMENT))
        fits--;
    REQUIRE_OK(pm_rollback(c.get()));
    const uint64_t bytes = test::stats(c.get()).file_bytes;
    REQUIRE(bytes == how.max_size);
    fails([&] { return pm_malloc_typed(c.get(), PM_TYPE(Large, next), fits); });
    fails([&] { return pm_malloc_typed(c.get(), PM_TYPE(Large, next), fits - 1); });
    REQUIRE(pm_malloc_typed(c.get(), PM_TYPE(Large, next), fits - 2)); // it needs two maps
    REQUIRE_OK(pm_commit(c.get()));
}

TEST_CASE("a sparse copy that cannot be filled stays as sparse")
{
    test::Disk disk(16 * MiB);
    std::string path = disk / "c.pm";
    const uint64_t length = [&] {
        test::Container c = test::open_with_pages(path, 1024, test::small());
        return test::stats(c.get()).file_bytes;
    }();
    std::string bytes = test::read_file(path);
    REQUIRE(unlink(path.c_str()) == 0);
    int fd = open(path.c_str(), O_CREAT | O_RDWR, 0600);
    REQUIRE(fd >= 0);
    REQUIRE(ftruncate(fd, (off_t)length) == 0);
    static const char zeros[4096] = {};
    for (uint64_t i = 0; i < length; i += 4096)
        if (memcmp(bytes.data() + i, zeros, 4096) != 0)
            REQUIRE(pwrite(fd, bytes.data() + i, 4096, (off_t)i) == 4096);
    REQUIRE(close(fd) == 0);
    fills_half = GENERATE(false, true);
    if (!fills_half)
        disk.fill(MiB);
    const Taken before = taken(disk, path, nullptr);
    REQUIRE(before.blocks * 512 < length / 2);
    pm_options how = test::options();
    test::Container c(pm_open(path.c_str(), &how));
    REQUIRE_FALSE(c);
    REQUIRE(test::failed_with(ENOSPC, {"sparse copy"}));
    fills_half = false;
    REQUIRE(taken(disk, path, nullptr) == before);
    REQUIRE(test::read_file(path) == bytes);
    if (disk.free_bytes() <= MiB)
        disk.free_all();
    c = test::open(path, how);
    REQUIRE_OK(pm_check(c.get()));
}
