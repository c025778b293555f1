// Large values that are in the file before their commit: that they do not count until then, and leave nothing
// behind if they never do.
#include "common/full_disk.hpp"
#include "unit/pages.hpp"
#include "unit/unchanged.hpp"

#include <filesystem>

using namespace values;

namespace
{

// An object of a mebibyte and a half, which is freed in the transaction that has made it.
void put_and_free(pm_container *c)
{
    REQUIRE_OK(pm_free(put(c, bytes_of(MiB * 3 / 2, 7))));
}

// Fill a disk that has room for a file of so many bytes. Returns how many objects there is room for.
int fill_disk(pm_container *c, const std::string &path, uint64_t bytes)
{
    const std::string value = bytes_of(10 * PAGE, 1); // no large one
    int objects = -1;
    for (int result = 0; result == 0; objects++) {
        test::disk_is_full = std::filesystem::file_size(path) >= bytes;
        store(c, value);
        result = pm_commit(c);
    }
    REQUIRE_OK(pm_rollback(c));
    test::disk_is_full = false;
    return objects;
}

} // namespace

TEST_CASE("a large value is in the file before its commit", "[log]")
{
    const size_t pages = GENERATE(15u, 16u, 17u, 254u, 255u, 256u, 600u);
    CAPTURE(pages);
    test::Directory directory;
    const std::string path = directory / "c.pm", value = bytes_of(pages * PAGE, 1);
    test::Container c = test::open(path, options());
    Root *root = make_root(c.get());
    char *object = static_cast<char *>(put(c.get(), value));
    REQUIRE((mapped(object, value.size(), path) > 0) == (pages >= 16));
    REQUIRE(std::string(object, value.size()) == value);
    const bool stored = GENERATE(false, true);
    std::string expected = value;
    if (stored) { // it is memory again, and the commit logs this line once more
        change(object + value.size() / 2);
        expected[value.size() / 2] ^= 0x55;
        REQUIRE(mapped(object + value.size() / 2, 1, path) == 0);
        REQUIRE(std::string(object, value.size()) == expected);
    }
    set(root, 0, object, value.size());
    crash(c, path); // nothing of it counts yet
    REQUIRE(root_of(c.get())->object[0] == nullptr);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a large value whose commit never came stays in a file that is only read", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", value = bytes_of(600 * PAGE, 1);
    test::Container c = test::open(path, options());
    make_root(c.get());
    set(root_of(c.get()), 0, put(c.get(), value), value.size());
    REQUIRE_OK(pm_commit(c.get()));
    put(c.get(), bytes_of(300 * PAGE, 2));
    const std::string died = test::read_file(path);
    c.reset();
    test::write_file(path, died);
    const test::Unchanged file(path);
    c = test::open(path, test::options(PM_READONLY | PM_ACCEPT_COPY));
    REQUIRE(test::stats(c.get()).recovered);
    REQUIRE(has(c.get(), 0, value));
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    file.require();
}

TEST_CASE("a large value that is rolled back leaves its room", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    make_root(c.get());
    uint64_t file = 0;
    std::string value;
    for (int i = 0; i < 19; i++) {
        value = bytes_of(4 * MiB, (unsigned)i);
        set(root_of(c.get()), 0, put(c.get(), value), value.size());
        if (i % 3 == 0)
            change(root_of(c.get())->object[0] + MiB);
        REQUIRE_OK(pm_rollback(c.get()));
        file = i == 0 ? test::stats(c.get()).file_bytes : file;
        REQUIRE(test::stats(c.get()).file_bytes == file);
        REQUIRE(root_of(c.get())->object[0] == nullptr);
        REQUIRE_OK(pm_check(c.get()));
    }
    // What is stored there is logged, though it was there before.
    set(root_of(c.get()), 0, store(c.get(), value), value.size());
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    REQUIRE(has(c.get(), 0, value));
}

// The second time it is not in the file at once. If it were, its pages would be mapped from one place, and the
// map would say another.
TEST_CASE("a large value is handed over twice", "[log]")
{
    const size_t piece = GENERATE(4u, 8u, 16u) * PAGE;
    CAPTURE(piece);
    test::Directory directory;
    const std::string path = directory / "c.pm", value = bytes_of(16 * PAGE, 1);
    test::Container c = test::open(path, options());
    char *object = static_cast<char *>(pm_aligned_alloc(c.get(), PAGE, value.size()));
    set(make_root(c.get()), 0, object, value.size());
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(object));
    REQUIRE_OK(pm_commit(c.get()));
    object = static_cast<char *>(pm_aligned_alloc(c.get(), PAGE, value.size()));
    REQUIRE(object);
    set(root_of(c.get()), 0, object, value.size());
    const std::string first = bytes_of(value.size(), 2);
    for (size_t at = 0; at < value.size(); at += piece)
        REQUIRE_OK(pm_write(object + at, first.data() + at, piece));
    REQUIRE_OK(pm_write(object, value.data(), value.size()));
    REQUIRE_OK(pm_commit(c.get()));
    // Values come and go, until their chunks are used again.
    for (int i = 0; i < 60; i++) {
        Root *root = root_of(c.get());
        if (root->object[1])
            REQUIRE_OK(pm_free(root->object[1]));
        const std::string other = bytes_of(200 * PAGE, (unsigned)i);
        set(root, 1, put(c.get(), other), other.size());
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(has(c.get(), 0, value));
    }
    crash(c, path);
    REQUIRE(has(c.get(), 0, value));
}

// Where it was are objects of any size, bitmaps, or nothing, as the same commit says.
TEST_CASE("a large value is freed before its commit", "[log]")
{
    const size_t size = GENERATE(0u, 16u, 100u, 3000u, 70000u, 3u << 20);
    const bool again = GENERATE(false, true), used = GENERATE(false, true);
    CAPTURE(size, again, used);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    make_root(c.get());
    if (used) { // the log has pieces of an earlier object there
        void *before = store(c.get(), bytes_of(2 * MiB, 3));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_free(before));
        REQUIRE_OK(pm_commit(c.get()));
    }
    put_and_free(c.get());
    std::string value[4];
    for (int i = 0; i < 4 && size > 0; i++) {
        value[i] = bytes_of(size, (unsigned)i);
        if (again)
            put_and_free(c.get());
        set(root_of(c.get()), i, i % 2 ? store(c.get(), value[i]) : put(c.get(), value[i]), size);
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (int round = 0; round < 3; round++) {
        REQUIRE_OK(pm_check(c.get()));
        crash(c, path);
        for (int i = 0; i < 4; i++)
            REQUIRE(has(c.get(), i, value[i]));
        // The room has further owners, who do not store to all of it.
        void *later = pm_malloc(c.get(), MiB);
        REQUIRE(later);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_free(later));
        REQUIRE_OK(pm_commit(c.get()));
    }
}

// Its pages were in the file as whole pages. Then single lines and words changed.
TEST_CASE("a committed object that is handed over anew comes back at a rollback", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", other = bytes_of(512 * PAGE, 2);
    std::string value = bytes_of(512 * PAGE, 1);
    test::Container c = test::open(path, options());
    char *object = static_cast<char *>(put(c.get(), value));
    set(make_root(c.get()), 0, object, value.size());
    REQUIRE_OK(pm_commit(c.get()));
    for (size_t at = 100; at < value.size(); at += PAGE) {
        change(object + at);
        value[at] ^= 0x55;
    }
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    object = static_cast<char *>(root_of(c.get())->object[0]);
    REQUIRE_OK(pm_write(object, other.data(), other.size()));
    REQUIRE_OK(pm_rollback(c.get()));
    for (int round = 0; round < 2; round++) {
        REQUIRE(has(c.get(), 0, value));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
        crash(c, path);
    }
}

// All lines of a segment lose their owners, those of the early part too. Each is dropped once.
TEST_CASE("a large value is freed with the last object of its segment", "[log]")
{
    const size_t size = 20 * PAGE; // a segment has several
    test::Directory directory;
    const std::string path = directory / "c.pm", kept = bytes_of(size, 1);
    test::Container c = test::open(path, options());
    void *first = put(c.get(), kept), *second = put(c.get(), kept), *before = second;
    set(make_root(c.get()), 0, first, size);
    while ((uintptr_t)before / MiB == (uintptr_t)first / MiB)
        before = put(c.get(), bytes_of(size, 2));
    REQUIRE_OK(pm_commit(c.get()));
    void *early = put(c.get(), bytes_of(size, 3));
    REQUIRE((uintptr_t)early / MiB == (uintptr_t)before / MiB);
    REQUIRE(mapped(static_cast<char *>(early), size, path) > 0);
    for (void *object : {early, before, second}) // of slabs with room, only one may be empty
        REQUIRE_OK(pm_free(object));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    crash(c, path);
    REQUIRE(has(c.get(), 0, kept));
}

// Memory holds few pages. Those of the value that a store has brought there must stay until the commit, for
// the map says nothing of them.
TEST_CASE("a large value is stored to, and memory is full", "[log]")
{
    pm_options how = options(PM_CREATE);
    how.private_max = 1; // the least
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, how);
    std::string value = bytes_of(40 * PAGE, 1);
    const std::string other = bytes_of(16 * MiB, 2);
    set(make_root(c.get()), 1, store(c.get(), other), other.size());
    REQUIRE_OK(pm_commit(c.get()));
    char *object = static_cast<char *>(put(c.get(), value));
    set(root_of(c.get()), 0, object, value.size());
    change(object);
    value[0] ^= 0x55;
    REQUIRE(has(c.get(), 1, other)); // others come to memory
    REQUIRE(has(c.get(), 0, value));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(has(c.get(), 0, value));
    crash(c, path);
    REQUIRE(has(c.get(), 0, value));
}

// A record of it alone would have no live line. Then its chunks could become void before a newer record is there.
TEST_CASE("a large value that is freed again makes no record of its own", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    make_root(c.get());
    put_and_free(c.get());
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, options(0));
    test::disk_is_full = true;
    store(c.get(), bytes_of(32 * MiB, 1));
    REQUIRE(pm_commit(c.get()) == -1); // it has voided what nobody needs
    test::disk_is_full = false;
    REQUIRE_OK(pm_rollback(c.get()));
    c.reset();
    c = test::open(path, options(0));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("the chunk of large values that are dead has room for others on a full disk", "[log]")
{
    int objects[2];
    for (const bool has_values : {false, true}) {
        test::Directory directory;
        const std::string path = directory / "c.pm";
        test::Container c = test::open(path, options());
        make_root(c.get());
        if (has_values) {
            void *value = put(c.get(), bytes_of(75 * PAGE, 1));
            REQUIRE_OK(pm_commit(c.get()));
            REQUIRE_OK(pm_free(value));
            REQUIRE_OK(pm_commit(c.get()));
        }
        objects[has_values] = fill_disk(c.get(), path, 16 * MiB);
    }
    CAPTURE(objects[0], objects[1]);
    CHECK(objects[1] >= objects[0] - 3); // a chunk has 25
}

// Nothing in it counts but the value, which nobody has committed. If it became void, the commit would write the
// value's header to a free chunk.
TEST_CASE("the chunk of a large value is not cleaned before the value's commit", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", value = bytes_of(20 * PAGE, 1);
    test::Container c = test::open(path, options());
    make_root(c.get());
    void *before = put(c.get(), bytes_of(226 * PAGE, 2)); // seven eighths of a chunk
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(before));
    REQUIRE_OK(pm_commit(c.get()));
    set(root_of(c.get()), 0, put(c.get(), value), value.size());
    test::disk_is_full = true;
    store(c.get(), bytes_of(32 * MiB, 3));
    REQUIRE(pm_commit(c.get()) == -1); // it has looked for room everywhere
    test::disk_is_full = false;
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    REQUIRE(has(c.get(), 0, value));
}

// It counts twice: the value is in the file, and what is stored to it is logged.
TEST_CASE("what is reserved is enough for a large value, and stores to all of it", "[log]")
{
    const std::string value = bytes_of(8 * MiB, 1);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    make_root(c.get());
    REQUIRE_OK(pm_reserve(c.get(), 2 * value.size() + 4 * PAGE));
    test::disk_is_full = true;
    char *object = static_cast<char *>(put(c.get(), value));
    REQUIRE_OK(pm_dirty(object, value.size()));
    std::string changed = value;
    for (size_t at = 0; at < value.size(); at += LINE)
        object[at] = changed[at] = 'x';
    set(root_of(c.get()), 0, object, value.size());
    REQUIRE_OK(pm_commit(c.get()));
    test::disk_is_full = false;
    crash(c, path);
    REQUIRE(has(c.get(), 0, changed));
}
