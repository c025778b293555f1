// Pages that are mapped from the log's file: when they are, and that it does not show.
#include "common/full_disk.hpp"
#include "common/process.hpp"
#include "unit/pages.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <sys/stat.h>

using namespace values;

using test::disk_is_full;

// 16 pages are the least; a chunk has room for 255.
TEST_CASE("whole pages are mapped when the container is opened", "[log]")
{
    const size_t pages = GENERATE(15u, 16u, 17u, 128u, 254u, 255u, 256u, 257u, 600u);
    const bool handed = GENERATE(false, true);
    CAPTURE(pages, handed);
    test::Directory directory;
    const std::string path = directory / "c.pm", value = bytes_of(pages * PAGE, 1);
    test::Container c = test::open(path, options());
    Root *root = make_root(c.get());
    set(root, 0, handed ? put(c.get(), value) : store(c.get(), value), value.size());
    REQUIRE_OK(pm_commit(c.get()));
    const size_t now = mapped(root->object[0], value.size(), path);
    REQUIRE((now > 0) == (handed && pages >= 16));
    REQUIRE(has(c.get(), 0, value));
    REQUIRE_OK(pm_check(c.get()));
    crash(c, path);
    REQUIRE(has(c.get(), 0, value));
    c.reset();
    c = test::open(path, options(0));
    root = root_of(c.get());
    const size_t then = mapped(root->object[0], value.size(), path);
    REQUIRE((then > 0) == (pages >= 16));
    REQUIRE((pages < 16 || then + 16 > pages)); // all but a rest that is too short
    REQUIRE(has(c.get(), 0, value));
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, options(PM_READONLY));
    REQUIRE(has(c.get(), 0, value));
}

TEST_CASE("a mapped page is stored to", "[log]")
{
    const size_t pages = GENERATE(16u, 300u);
    const bool reopened = GENERATE(false, true);
    CAPTURE(pages, reopened);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    std::string value = bytes_of(pages * PAGE, 2);
    test::Container c = test::open(path, options());
    set(make_root(c.get()), 0, put(c.get(), value), value.size());
    REQUIRE_OK(pm_commit(c.get()));
    if (reopened) {
        c.reset();
        c = test::open(path, options(0));
    }
    char *object = root_of(c.get())->object[0];
    REQUIRE(mapped(object, value.size(), path) > 0);
    for (size_t at : {size_t{0}, 5 * PAGE, value.size() - 1}) {
        change(object + at);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(has(c.get(), 0, value));
        change(object + at);
        value[at] ^= 0x55;
        REQUIRE(has(c.get(), 0, value));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(has(c.get(), 0, value));
        crash(c, path);
        REQUIRE(has(c.get(), 0, value));
    }
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, options(0));
    REQUIRE(has(c.get(), 0, value));
}

// Runs begin and end anywhere. Most are about as long as parts of whole pages are at least. They meet a chunk
// with any room left.
TEST_CASE("runs of every length, from every line on", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    Root *root = make_root(c.get());
    std::string value = bytes_of(3 * MiB, 1);
    set(root, 0, store(c.get(), value), value.size());
    REQUIRE_OK(pm_commit(c.get()));
    std::mt19937 random(2);
    for (int step = 0; step < 150; step++) {
        const size_t lines = random() % 4 == 0 ? 1 + random() % 20000 : 1000 + random() % 180;
        const size_t from = (random() % 2 == 0 ? random() % 300 : 0) + random() % 100 * 64;
        const size_t size = std::min(lines * LINE, value.size() - from * LINE);
        const std::string bytes = bytes_of(size, random());
        value.replace(from * LINE, size, bytes);
        REQUIRE_OK(pm_write(root->object[0] + from * LINE, bytes.data(), size));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(has(c.get(), 0, value));
        if (step % 10 == 9) {
            crash(c, path);
            REQUIRE(has(c.get(), 0, value));
        }
    }
}

// What was mapped is freed, its memory gets other owners, and its chunks are cleaned.
TEST_CASE("mapped values come and go", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    make_root(c.get());
    std::mt19937 random(GENERATE(1u, 2u, 3u));
    std::string model[16], committed[16];
    for (int step = 0; step < 80; step++) {
        Root *root = root_of(c.get());
        for (unsigned changes = 1 + random() % 4; changes > 0; changes--) {
            const int i = (int)(random() % 16);
            const unsigned what = random() % 10;
            if (what < 3 && root->object[i]) {
                const size_t at = random() % root->size[i];
                change(root->object[i] + at);
                model[i][at] ^= 0x55;
                continue;
            }
            if (root->object[i])
                REQUIRE_OK(pm_free(root->object[i]));
            const size_t size = random() % 3 == 0 ? 1 + random() % 3000 : 1 + random() % (2 * MiB);
            model[i] = what == 3 ? "" : bytes_of(size, random());
            set(root, i,
                what == 3  ? nullptr
                : what < 8 ? put(c.get(), model[i])
                           : store(c.get(), model[i]),
                model[i].size());
        }
        const unsigned end = random() % 12;
        if (end < 2) {
            REQUIRE_OK(pm_rollback(c.get()));
            std::copy(committed, committed + 16, model);
        } else {
            REQUIRE_OK(pm_commit(c.get()));
            std::copy(model, model + 16, committed);
        }
        if (end == 2)
            REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
        if (end == 3) {
            c.reset();
            c = test::open(path, options(0));
        }
        for (int i = 0; i < 16; i++)
            REQUIRE(has(c.get(), i, model[i]));
        if (step % 20 == 7) {
            crash(c, path);
            std::copy(committed, committed + 16, model);
            for (int i = 0; i < 16; i++)
                REQUIRE(has(c.get(), i, committed[i]));
        }
    }
    REQUIRE_OK(pm_check(c.get()));
}

// The lines of mapped pages are live in chunks that small commits fill with dead ones.
TEST_CASE("the cleaner moves what is mapped", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    Root *root = make_root(c.get());
    std::string values[8];
    char *small = static_cast<char *>(pm_calloc(c.get(), 1, MiB / 2));
    REQUIRE(small);
    auto churn = [&](size_t commits) {
        std::mt19937 random(3);
        for (size_t i = 0; i < commits; i++) {
            for (int n = 0; n < 200; n++)
                memset(small + random() % (MiB / 2 / LINE) * LINE, (int)random(), LINE);
            REQUIRE_OK(pm_commit(c.get()));
        }
    };
    for (int i = 0; i < 8; i++) { // stored, for what is handed over has chunks of its own
        values[i] = bytes_of(40 * PAGE, (unsigned)i);
        set(root, i, store(c.get(), values[i]), values[i].size());
        REQUIRE_OK(pm_commit(c.get()));
        churn(40);
    }
    const size_t offset = (size_t)(small - (char *)root);
    c.reset();
    c = test::open(path, options(0));
    root = root_of(c.get());
    small = (char *)root + offset;
    size_t before = 0, after = 0;
    for (int i = 0; i < 8; i++)
        before += mapped(root->object[i], values[i].size(), path);
    REQUIRE(before > 0);
    const uint64_t epochs = test::stats(c.get()).epoch;
    churn(1500);
    REQUIRE(test::stats(c.get()).epoch > epochs + 1500); // the cleaner's records
    for (int i = 0; i < 8; i++) {
        after += mapped(root->object[i], values[i].size(), path);
        REQUIRE(has(c.get(), i, values[i]));
    }
    REQUIRE(after < before);
    crash(c, path);
    for (int i = 0; i < 8; i++)
        REQUIRE(has(c.get(), i, values[i]));
}

namespace
{

struct Node {
    Node *next;
    uint64_t number;
};

void forge_target(const std::string &path, uint64_t address)
{
    const uint64_t word = seal(address);
    test::patch_file(path, FORMAT_STATE + offsetof(format_state, target), &word, sizeof word);
}

size_t maps()
{
    std::ifstream in("/proc/self/maps");
    size_t n = 0;
    for (std::string line; std::getline(in, line);)
        n++;
    return n;
}

} // namespace

namespace
{

constexpr size_t NODES = 40 * PAGE / sizeof(Node);

// Leaves a closed container whose pages are mapped at the next opening, and have pointers. Returns its base.
uint64_t make_nodes(const std::string &path)
{
    test::Container c = test::open(path, options());
    Root *root = make_root(c.get());
    auto *nodes = static_cast<Node *>(pm_malloc_typed(c.get(), PM_TYPE(Node, next), NODES));
    REQUIRE(nodes);
    REQUIRE_OK(pm_dirty(nodes, NODES * sizeof *nodes));
    for (size_t i = 0; i < NODES; i++)
        nodes[i] = {&nodes[(i + 7) % NODES], i};
    set(root, 0, nodes, NODES * sizeof *nodes);
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, options(0));
    root = root_of(c.get());
    REQUIRE(mapped(root->object[0], root->size[0], path) > 0);
    return (uint64_t)root >> 30 << 30;
}

bool has_nodes(pm_container *c)
{
    const Node *nodes = reinterpret_cast<Node *>(root_of(c)->object[0]);
    size_t i = 0;
    while (i < NODES && nodes[i].next == &nodes[(i + 7) % NODES] && nodes[i].number == i)
        i++;
    return i == NODES;
}

} // namespace

// A process has died when it had said where the container moves, and not yet moved it.
TEST_CASE("an interrupted relocation goes on in pages that would be mapped", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    const uint64_t there = make_nodes(path) + (UINT64_C(1) << 30);
    forge_target(path, there);
    for (int i = 0; i < 2; i++) {
        test::Container c = test::open(path, options(0));
        REQUIRE((uint64_t)root_of(c.get()) >> 30 << 30 == there);
        REQUIRE(has_nodes(c.get()));
        REQUIRE_OK(pm_check(c.get()));
    }
}

TEST_CASE("a copy with whole pages is opened beside its original", "[log]")
{
    const unsigned flags = GENERATE(0u, (unsigned)PM_RELOCATE);
    CAPTURE(flags);
    test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    make_nodes(path);
    test::write_file(copy, test::read_file(path));
    test::Container original = test::open(path, options(0)), c = test::open(copy, options(flags));
    REQUIRE(root_of(original.get()) != root_of(c.get()));
    const std::string value = bytes_of(50 * PAGE, 1);
    for (int i = 0; i < 3; i++) {
        Root *root = root_of(c.get());
        REQUIRE(has_nodes(c.get()));
        change(root->object[0] + 5 * PAGE + 8); // of a number
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(has_nodes(c.get()));
        if (root->object[1])
            REQUIRE_OK(pm_free(root->object[1]));
        set(root, 1, put(c.get(), value), value.size());
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(has(c.get(), 1, value));
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        c = test::open(copy, options(flags));
        REQUIRE(has(c.get(), 1, value));
    }
    REQUIRE(has_nodes(original.get()));
}

TEST_CASE("pages that were mapped leave no maps behind", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    Root *root = make_root(c.get());
    size_t before = 0, times = 0;
    for (unsigned step = 0; step < 150; step++) {
        const std::string value = bytes_of((60 + step % 3) * PAGE, step);
        set(root, 0, put(c.get(), value), value.size());
        REQUIRE_OK(pm_commit(c.get()));
        times += mapped(root->object[0], value.size(), path) > 0;
        change(root->object[0] + step % 60 * PAGE);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_free(root->object[0]));
        set(root, 0, nullptr, 0);
        REQUIRE_OK(pm_commit(c.get()));
        if (step == 10)
            before = maps();
    }
    REQUIRE(times > 20);
    REQUIRE(maps() < before + 70); // pages that stay open cost some
}

// Two containers want more maps than a process may have. What is not mapped is in memory.
TEST_CASE("containers of a process share its maps", "[log]")
{
    constexpr uint64_t values = 5000, bytes = 17 * PAGE, maps_max = 4 * 8192 + 500;
    test::Directory directory;
    const std::string paths[] = {directory / "a.pm", directory / "b.pm"},
                      value = bytes_of(bytes, 1);
    pm_options how = options();
    how.max_size = 1024 * MiB;
    for (int turn = 0; turn < 3; turn++) {
        test::Container opened[2];
        for (int i = 0; i < 2; i++) {
            pm_container *c = (opened[i] = test::open(paths[turn == 1 ? 1 - i : i], how)).get();
            if (turn == 0) {
                auto **objects = static_cast<char **>(pm_calloc(c, values, sizeof(char *)));
                REQUIRE(objects);
                REQUIRE_OK(pm_setroot(c, objects, 0));
                for (uint64_t n = 0; n < values; n++)
                    objects[n] = static_cast<char *>(put(c, value));
                REQUIRE_OK(pm_commit(c));
            }
            auto **objects = static_cast<char **>(pm_getroot(c));
            for (uint64_t n = 0; n < values; n++)
                if (memcmp(objects[n], value.data(), bytes) != 0)
                    FAIL("value " << n << " is wrong");
            REQUIRE(maps() < maps_max);
        }
    }
}

TEST_CASE("what is mapped at the container's end is cut off", "[log]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    make_root(c.get());
    const std::string value = bytes_of(3 * MiB, 1);
    char *object = static_cast<char *>(put(c.get(), value));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(mapped(object, value.size(), path) > 0);
    REQUIRE_OK(pm_free(object));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    REQUIRE(mapped(object, value.size(), path) == 0);
    const std::string other = bytes_of(4 * MiB, 2);
    set(root_of(c.get()), 0, put(c.get(), other), other.size());
    REQUIRE(has(c.get(), 0, other));
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    REQUIRE(has(c.get(), 0, other));
}

// In front of whole pages, and at a chunk's end, lines stay unused. Room for them is reserved too.
TEST_CASE("what is reserved is enough for parts of whole pages", "[log]")
{
    const size_t segment = GENERATE(MiB / 4, MiB);
    const size_t lines = GENERATE(1024u, 1025u, 1087u, 1088u, 1150u, 2050u, 3008u, 3100u, 15000u);
    const size_t from = GENERATE(0u, 1u, 63u);
    CAPTURE(segment, lines, from);
    test::Directory directory;
    pm_options how = options();
    how.segment_size = segment;
    test::Container c = test::open(directory / "c.pm", how);
    Root *root = make_root(c.get());
    const size_t objects = 8 * MiB / (lines * LINE) + 2;
    const std::string bytes = bytes_of(lines * LINE, 1);
    const size_t stride = (from + lines + 64) / 64 * PAGE; // a line at least is between two runs
    auto *all = static_cast<char *>(pm_malloc(c.get(), objects * stride));
    REQUIRE(all);
    set(root, 0, all, objects * stride);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_reserve(c.get(), objects * stride));
    const uint64_t file = test::stats(c.get()).file_bytes;
    for (size_t i = 0; i < objects; i++)
        REQUIRE_OK(pm_write(all + i * stride + from * LINE, bytes.data(), bytes.size()));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).file_bytes == file);
    for (size_t i = 0; i < objects; i++)
        REQUIRE(memcmp(all + i * stride + from * LINE, bytes.data(), bytes.size()) == 0);
}

TEST_CASE("what has been handed over is reserved with the rest", "[log]")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", options());
    Root *root = make_root(c.get());
    const std::string value = bytes_of(9 * MiB, 1);
    set(root, 0, put(c.get(), value), value.size());
    REQUIRE_OK(pm_reserve(c.get(), PAGE));
    const uint64_t file = test::stats(c.get()).file_bytes;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).file_bytes == file);
}

// The cleaner empties chunks of whole pages. Commits that find no room are tried again, and rolled back.
TEST_CASE("values come and go on a full disk", "[log][full]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, options());
    make_root(c.get());
    std::mt19937 random(GENERATE(1u, 2u));
    std::string model[16];
    auto replace = [&](int i, size_t size) {
        Root *root = root_of(c.get());
        if (root->object[i])
            REQUIRE_OK(pm_free(root->object[i]));
        const std::string value = bytes_of(size, random());
        set(root, i, random() % 4 == 0 ? store(c.get(), value) : put(c.get(), value), size);
        return value;
    };
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 16; i++) {
            model[i] = replace(i, 64 * PAGE + random() % (64 * PAGE));
            REQUIRE_OK(pm_commit(c.get()));
        }
    disk_is_full = true;
    const uint64_t file = test::stats(c.get()).file_bytes;
    size_t failures = 0;
    for (int step = 0; step < 120; step++) {
        const int i = (int)(random() % 16), other = (i + 1) % 16;
        const size_t most = step % 20 == 19 ? 12 * MiB : 128 * PAGE;
        const std::string value = replace(i, 1 + random() % most);
        // The cleaner logs what this had at the last commit.
        std::string whole = model[other];
        if (step % 10 == 9) {
            whole = bytes_of(whole.size(), random());
            REQUIRE_OK(pm_write(root_of(c.get())->object[other], whole.data(), whole.size()));
        }
        int result = pm_commit(c.get());
        if (result != 0 && random() % 2 == 0) {
            REQUIRE(test::failed_with(ENOSPC));
            result = pm_commit(c.get());
        }
        if (result == 0) {
            model[i] = value;
            model[other] = whole;
        } else {
            REQUIRE(test::failed_with(ENOSPC));
            REQUIRE_OK(pm_rollback(c.get()));
            failures++;
        }
        for (int k = 0; k < 16; k++)
            REQUIRE(has(c.get(), k, model[k]));
        if (step % 30 == 29) {
            crash(c, path);
            for (int k = 0; k < 16; k++)
                REQUIRE(has(c.get(), k, model[k]));
        }
    }
    INFO(failures << " of 120 commits failed");
    CHECK(failures < 60);
    CHECK(failures > 0);
    REQUIRE(test::stats(c.get()).file_bytes == file);
    disk_is_full = false;
    model[0] = replace(0, 12 * MiB);
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    for (int k = 0; k < 16; k++)
        REQUIRE(has(c.get(), k, model[k]));
}
