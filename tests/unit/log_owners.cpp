// Lines of freed memory do not count under the log engine (L14), so they take no room. What was freed must not
// come back. An object where a committed one was keeps what the program saw there, stored to or not.
#include "common/format.hpp"
#include "common/full_disk.hpp"
#include "common/process.hpp"
#include "unit/page_state.h"

extern "C" {
#include "container/format_log.h"
}

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

using test::disk_is_full;

extern "C" {
struct txn;
int __real_log_store(struct txn *t, uint64_t place, const void *from, uint64_t bytes);

static bool write_fails; // the next one

int __wrap_log_store(struct txn *t, uint64_t place, const void *from, uint64_t bytes)
{
    return std::exchange(write_fails, false) ? -EIO : __real_log_store(t, place, from, bytes);
}
}

namespace
{

constexpr uint64_t KiB = 1 << 10, MiB = 1 << 20, CHUNK = 64 * KiB, LINE = 64;

struct Node {
    Node *next, *previous;
};

struct Root {
    Node ends; // of a ring
    void *slots[64];
};

Root *make_root(pm_container *c)
{
    auto *root = static_cast<Root *>(pm_calloc(c, 1, sizeof(Root)));
    REQUIRE(root);
    root->ends.next = root->ends.previous = &root->ends;
    REQUIRE_OK(pm_mark_pointers(root, sizeof(Root) / sizeof(void *)));
    REQUIRE_OK(pm_setroot(c, root, 0));
    REQUIRE_OK(pm_commit(c));
    return root;
}

// False: the disk is full.
bool insert(pm_container *c, Root *root, size_t size)
{
    auto *node = static_cast<Node *>(pm_malloc(c, size));
    if (node) {
        memset(static_cast<void *>(node), 'x', size);
        *node = {root->ends.next, &root->ends};
        REQUIRE_OK(pm_mark_pointers(node, 2));
        node->next->previous = node->previous->next = node;
        if (pm_commit(c) == 0)
            return true;
    }
    REQUIRE(errno == ENOSPC);
    REQUIRE_OK(pm_rollback(c));
    return false;
}

uint64_t fill_disk(pm_container *c, Root *root, size_t size, const std::string &path,
                   uint64_t bytes)
{
    uint64_t objects = 0;
    do
        disk_is_full = std::filesystem::file_size(path) >= bytes;
    while (insert(c, root, size) && ++objects);
    REQUIRE(disk_is_full);
    return objects;
}

// What the program sees of an object, to be compared later.
using Bytes = std::string;

Bytes seen(const void *object, size_t size)
{
    return Bytes(static_cast<const char *>(object), size);
}

} // namespace

TEST_CASE("objects can be freed one by one on a full disk, and their room comes back")
{
    const size_t size = GENERATE(40u, 100u, 3000u, 100000u);
    CAPTURE(size);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    disk_is_full = false;
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    Root *root = make_root(c.get());
    const uint64_t objects = fill_disk(c.get(), root, size, path, 4 * MiB);

    std::mt19937 random(1);
    std::vector<Node *> nodes;
    for (Node *n = root->ends.next; n != &root->ends; n = n->next)
        nodes.push_back(n);
    REQUIRE(nodes.size() == objects);
    std::shuffle(nodes.begin(), nodes.end(), random);
    const bool half = GENERATE(true, false);
    nodes.resize(half ? nodes.size() / 2 : nodes.size());
    for (Node *n : nodes) {
        n->next->previous = n->previous;
        n->previous->next = n->next;
        REQUIRE_OK(pm_free(n));
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_check(c.get()));
    const uint64_t before = std::filesystem::file_size(path);
    REQUIRE(before >= 4 * MiB);
    if (half) { // what is free is enough for as many
        for (size_t i = 0; i < nodes.size() * 3 / 4; i++)
            REQUIRE(insert(c.get(), root, size));
    } else {
        REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
        root = static_cast<Root *>(pm_getroot(c.get()));
        CHECK(std::filesystem::file_size(path) <= 10 * CHUNK);
        CHECK(fill_disk(c.get(), root, size, path, 4 * MiB) >= objects * 9 / 10);
    }
    disk_is_full = false;
    c.reset();
    c = test::open(path, test::options());
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a disk is filled again and again, and there is always room to free objects", "[refilled]")
{
    const uint64_t chunks = GENERATE(10u, 13u, 19u);
    const bool reopens = GENERATE(false, true), fails = GENERATE(false, true);
    CAPTURE(chunks, reopens, fails);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    disk_is_full = false;
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    Root *root = make_root(c.get());
    std::mt19937 random(1);
    auto fill = [&] {
        do
            disk_is_full = std::filesystem::file_size(path) >= chunks * CHUNK;
        while (insert(c.get(), root, 16 + random() % 240));
    };
    auto free_some = [&] {
        std::vector<Node *> nodes;
        for (Node *n = root->ends.next; n != &root->ends; n = n->next)
            nodes.push_back(n);
        std::shuffle(nodes.begin(), nodes.end(), random);
        nodes.resize(1 + random() % 20);
        for (Node *n : nodes) {
            n->next->previous = n->previous;
            n->previous->next = n->next;
            REQUIRE_OK(pm_free(n));
        }
    };
    for (int i = 0; i < (fails ? 100 : 400); i++) {
        fill();
        if (fails) { // a commit that frees, and others then fill what it would have taken
            free_some();
            write_fails = true;
            REQUIRE(pm_commit(c.get()) == -1);
            REQUIRE_OK(pm_rollback(c.get()));
            fill();
        }
        free_some();
        REQUIRE_OK(pm_commit(c.get()));
        if (reopens) {
            c.reset();
            c = test::open(path, test::small(PM_MOVABLE));
            root = static_cast<Root *>(pm_getroot(c.get()));
        }
    }
    disk_is_full = false;
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a full disk, and a chunk that the cleaner fills has died")
{
    uint64_t dead = 0;
    for (size_t bytes = 40 * KiB; bytes < 64 * KiB; bytes += 2000)
        for (size_t kept = 3; kept < 9; kept += 2) {
            CAPTURE(bytes, kept);
            test::Directory directory;
            disk_is_full = false;
            test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
            make_root(c.get());
            std::vector<void *> objects(5 * kept);
            for (void *&object : objects) {
                object = pm_malloc(c.get(), bytes);
                REQUIRE(object);
                memset(object, 'x', bytes);
            }
            REQUIRE_OK(pm_commit(c.get()));
            for (size_t i = 0; i < objects.size(); i++)
                if (i % 5 != 0)
                    REQUIRE_OK(pm_free(objects[i]));
            REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr,
                                  nullptr)); // the cleaner logs those that are left
            const void *root = pm_getroot(c.get());
            for (void *p = pm_next_object(c.get(), nullptr, nullptr), *next; p; p = next) {
                next = pm_next_object(c.get(), p, nullptr);
                if (p != root)
                    REQUIRE_OK(pm_free(p));
            }
            REQUIRE_OK(pm_commit(c.get()));
            const uint32_t chunk = cleaners_chunk(c.get());
            dead += chunk != 0 && live_lines(c.get(), chunk) == 0;
            disk_is_full = true;
            if (pm_reserve(c.get(), 2 * MiB) != 0) // it once looked for room for ever
                REQUIRE(errno == ENOSPC);
            while (void *p = pm_malloc(c.get(), 20 * KiB)) {
                memset(p, 'y', 20 * KiB);
                if (pm_commit(c.get()) != 0)
                    break;
            }
            REQUIRE(errno == ENOSPC);
            REQUIRE_OK(pm_check(c.get()));
            REQUIRE(lost_chunks(c.get()) == 0);
        }
    REQUIRE(dead > 0);
    disk_is_full = false;
}

TEST_CASE("an object that shares lines with others leaves those to them")
{
    const size_t size = GENERATE(16u, 48u, 64u, 80u, 144u, 288u);
    CAPTURE(size);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE));
    Root *root = make_root(c.get());
    std::vector<uint64_t> users(64 * size / LINE + 2); // how many objects touch each line
    auto first_line = [&](const void *p) {
        return ((uintptr_t)p - (uintptr_t)root->slots[0] / LINE * LINE) / LINE;
    };
    for (void *&slot : root->slots) {
        slot = pm_malloc(c.get(), size);
        REQUIRE(slot);
        memset(slot, 'a', size);
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (void *slot : root->slots)
        for (uint64_t line = first_line(slot); line <= first_line((char *)slot + size - 1); line++)
            users[line]++;

    std::vector<void **> order;
    for (void *&slot : root->slots)
        order.push_back(&slot);
    std::mt19937 random((unsigned)size);
    std::shuffle(order.begin(), order.end(), random);
    pm_close(c.release()); // the cleaner has nothing to do, so only owners change what is live
    c = test::open(path, test::options());
    for (void **slot : order) {
        const uint64_t before = live_words(c.get());
        uint64_t freed = 0;
        for (uint64_t line = first_line(*slot); line <= first_line((char *)*slot + size - 1);
             line++)
            freed += --users[line] == 0;
        REQUIRE_OK(pm_free(*slot));
        REQUIRE_OK(pm_commit(c.get()));
        const int64_t words = (int64_t)(before - live_words(c.get()));
        CAPTURE(words, freed);
        // The bitmap may have got a delta, or lost one.
        CHECK(std::abs(words - (int64_t)freed * 8) <= 1 + (int64_t)LOG_DELTA_WORDS_MAX);
        REQUIRE_OK(pm_check(c.get()));
    }
}

TEST_CASE("what was freed does not come back, and what the program saw of an object stays")
{
    std::mt19937 random(GENERATE(1u, 2u, 3u, 4u, 5u, 6u));
    test::Directory directory;
    const std::string path = directory / "c.pm", other = directory / "other.pm";
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    Root *root = make_root(c.get());
    Bytes model[64], committed[64];
    auto holds = [&](const Bytes *expected) {
        root = static_cast<Root *>(pm_getroot(c.get()));
        for (int i = 0; i < 64; i++) {
            REQUIRE((root->slots[i] != nullptr) == !expected[i].empty());
            if (root->slots[i] && seen(root->slots[i], expected[i].size()) != expected[i])
                FAIL("object " << i << " of " << expected[i].size() << " bytes");
        }
    };
    for (int step = 0; step < 300; step++) {
        for (unsigned n = random() % 8; n > 0; n--) {
            const unsigned i = random() % 64;
            if (root->slots[i]) {
                REQUIRE_OK(pm_free(root->slots[i]));
                root->slots[i] = nullptr;
                model[i].clear();
                continue;
            }
            const size_t sizes[] = {16, 48, 80, 288, 1152, 5000, 70'000, 200'000},
                         size = sizes[random() % 8];
            auto *object = static_cast<char *>(pm_malloc(c.get(), size));
            REQUIRE(object);
            for (unsigned stores = random() % 4; stores > 0; stores--) // most of it is as it was
                object[random() % size] = (char)random();
            if (random() % 4 == 0)
                memset(object, (int)random(), size);
            root->slots[i] = object;
            model[i] = seen(object, size);
        }
        if (random() % 8 == 0) {
            REQUIRE_OK(pm_rollback(c.get()));
            std::copy(committed, committed + 64, model);
        } else {
            REQUIRE_OK(pm_commit(c.get()));
            std::copy(model, model + 64, committed);
        }
        REQUIRE_OK(pm_check(c.get()));
        if (step % 60 == 59)
            REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
        if (step % 10 == 9) { // as a crash leaves it
            test::write_file(other, test::read_file(path));
            c.reset();
            std::filesystem::rename(other, path);
            c = test::open(path, test::options(PM_ACCEPT_COPY | PM_MOVABLE));
        }
        holds(model);
    }
}

TEST_CASE("a store to freed memory is nobody's")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE));
    Root *root = make_root(c.get());
    const size_t size = GENERATE(64u, 1024u);
    auto *kept = static_cast<char *>(
             pm_malloc(c.get(), size)), // or the segment is free with the object
        *freed = static_cast<char *>(pm_malloc(c.get(), size));
    REQUIRE((kept && freed));
    root->slots[0] = kept;
    memset(freed, 'f', size);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(freed));
    REQUIRE_OK(pm_commit(c.get()));
    const bool beside = GENERATE(true, false); // another store, to an object
    for (int i = 0; i < 3; i++) {
        freed[size / 2] = (char)i;
        if (beside)
            kept[0] = (char)i;
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
    }
    c.reset();
    c = test::open(path, test::options());
    REQUIRE_OK(pm_check(c.get()));
    auto *again = static_cast<char *>(pm_malloc(c.get(), size));
    REQUIRE(again);
    const Bytes before = seen(again, size);
    root = static_cast<Root *>(pm_getroot(c.get()));
    root->slots[1] = again;
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options());
    root = static_cast<Root *>(pm_getroot(c.get()));
    const bool same = seen(root->slots[1], size) == before;
    REQUIRE(same);
}

TEST_CASE("to free memory that nobody stored to takes no memory for the map", "[unstored]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::options(PM_CREATE);
    how.max_size = 4096 * MiB;
    test::Container c = test::open(path, how);
    void *object = pm_malloc(c.get(), 2048 * MiB);
    REQUIRE(object);
    REQUIRE_OK(pm_commit(c.get()));
    const uint64_t before = test::anonymous_bytes();
    REQUIRE_OK(pm_free(object));
    REQUIRE_OK(pm_commit(c.get()));
    CHECK(test::anonymous_bytes() < before + MiB); // the map has a word for each KiB: 8 MiB
}

TEST_CASE("a container of version 5 keeps what was freed, and stays one of version 5")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    make_root(c.get());
    c.reset();
    test::set_version(path, FORMAT_LOG_KEEPING);
    for (int round = 0; round < 3; round++) {
        c = test::open(path, test::options(PM_MOVABLE));
        auto *root = static_cast<Root *>(pm_getroot(c.get()));
        for (void *&slot : root->slots) {
            slot = pm_malloc(c.get(), 10 * KiB);
            REQUIRE(slot);
            memset(slot, 'a' + round, 10 * KiB);
        }
        REQUIRE_OK(pm_commit(c.get()));
        const uint64_t before = live_words(c.get());
        for (void *&slot : root->slots) {
            REQUIRE_OK(pm_free(slot));
            slot = nullptr;
        }
        REQUIRE_OK(pm_commit(c.get()));
        CHECK(live_words(c.get()) + 100 >= before); // some metadata is zero again
        REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
    }
    CHECK(test::header_of(path).version == FORMAT_LOG_KEEPING);
}
