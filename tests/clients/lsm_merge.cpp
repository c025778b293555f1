// Mode `merging` merges lists in persistent memory by pointer. These tests read during a merge. They check that
// hidden versions are freed, and count the bytes that a merge logs.
#include "lsm_tiny.hpp"

#include "lsm/node.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

namespace
{

lsm::Options merging()
{
    lsm::Options options = tiny(Memtables::merging);
    options.persistent_bytes = 256 << 20; // so that nothing becomes a table
    return options;
}

struct Lists {
    uint64_t count = 0, bytes = 0;
};

// In the container.
Lists lists(lsm::Store &store)
{
    Lists found;
    std::istringstream lines(*store.property("memtables"));
    std::string where;
    for (uint64_t bytes; lines >> where >> bytes;)
        if (where == "container") {
            found.count++;
            found.bytes += bytes;
        }
    return found;
}

// Until the background has done all it can.
Lists settled(lsm::Store &store)
{
    Lists before = lists(store), now;
    for (int quiet = 0; quiet < 20; quiet++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        now = lists(store);
        if (now.count != before.count || now.bytes != before.bytes)
            quiet = 0;
        before = now;
    }
    return now;
}

// What happens once, before a memtable is searched for a key.
std::function<void()> before_search;

struct Fixture {
    test::Directory directory;
    std::string path = directory / "s";
    std::unique_ptr<lsm::Store> store = lsm::Store::open(path, merging());
    std::mt19937 random{1};
    Model model;

    // One write: mostly a put of one of `keys` keys, sometimes a deletion.
    void write(unsigned keys, size_t bytes)
    {
        const std::string key = "k" + std::to_string(random() % keys);
        if (random() % 10 == 0) {
            store->remove(key);
            model.erase(key);
        } else {
            const std::string value = std::to_string(random()) + std::string(bytes, 'v');
            store->put(key, value);
            model[key] = value;
        }
    }
};

// A list whose towers can be looked at.
class Towers : public lsm::Memtable
{
  public:
    Towers() : Towers(std::make_unique<lsm::HeapMemory>()) {}

    // Every node at its height, in order, at every level.
    void check() const
    {
        for (unsigned level = 0; level < height_max; level++) {
            const Node *below = head_->after(0);
            for (const Node *node = head_->after(level); node; node = node->after(level)) {
                for (; below != node; below = below->after(0)) {
                    REQUIRE(below);
                    REQUIRE(below->height <= level);
                }
                below = below->after(0);
                REQUIRE(node->height > level);
                if (const Node *next = node->after(level))
                    REQUIRE(lsm::compare(node->key(), next->key()) < 0);
            }
            for (; below; below = below->after(0))
                REQUIRE(below->height <= level);
        }
    }

  private:
    explicit Towers(std::unique_ptr<lsm::Memory> memory) : Towers(*memory, memory) {}
    Towers(lsm::Memory &memory, std::unique_ptr<lsm::Memory> &owned)
        : Towers(make_head(memory), owned)
    {
    }
    Towers(Node *head, std::unique_ptr<lsm::Memory> &owned)
        : Memtable(std::move(owned), head, 4096), head_(head)
    {
    }

    Node *const head_;
};

} // namespace

// Memtable::get(), which is wrapped under its name in the object file.
#define GET "_ZNK3lsm8Memtable3getESt17basic_string_viewIcSt11char_traitsIcEEm"
std::optional<lsm::Memtable::Found> real_get(const lsm::Memtable *table, std::string_view key,
                                             lsm::Sequence sequence) __asm__("__real_" GET);
std::optional<lsm::Memtable::Found> wrapped_get(const lsm::Memtable *table, std::string_view key,
                                                lsm::Sequence sequence) __asm__("__wrap_" GET);

std::optional<lsm::Memtable::Found> wrapped_get(const lsm::Memtable *table, std::string_view key,
                                                lsm::Sequence sequence)
{
    if (auto hook = std::exchange(before_search, nullptr))
        hook();
    return real_get(table, key, sequence);
}

TEST_CASE_METHOD(Fixture, "merged lists have all pairs, also for snapshots and after a restart")
{
    const unsigned keys = GENERATE(10, 3000);
    Model then;
    std::unique_ptr<lsm::Snapshot> snapshot;
    for (int i = 0; i < 12000; i++) {
        write(keys, 500);
        if (i == 5000) {
            snapshot = store->snapshot();
            then = model;
        }
    }
    REQUIRE(settled(*store).count <= 5); // of 20 or so
    compare(*store, model);
    compare(*store, then, snapshot.get());
    for (const auto &[key, value] : then)
        REQUIRE(store->get(key, snapshot.get()) == value);
    snapshot.reset();
    store.reset();
    store = lsm::Store::open(path);
    compare(*store, model);
    for (int i = 0; i < 3000; i++)
        write(keys, 500);
    settled(*store);
    compare(*store, model);
    store->check();
    store->compact();
    REQUIRE(lists(*store).count == 1); // for the next writes
    compare(*store, model);
}

TEST_CASE_METHOD(Fixture, "an iterator shows its moment while pairs move, forwards and backwards")
{
    // The audit compares all of the container for each commit.
    const unsigned keys = test::repetitions(getenv("LIBPM_AUDIT") ? 200 : 500, 1000);
    for (int i = 0; i < 2000; i++)
        write(keys, 400);
    const Model then = model;
    auto snapshot = store->snapshot();
    for (int i = 0; i < 2000; i++)
        write(keys, 400);
    auto forward = store->iterator(snapshot.get()), backward = store->iterator(snapshot.get());
    snapshot.reset(); // they need it no longer
    forward->seek_to_first();
    backward->seek_to_last();
    auto up = then.begin();
    auto down = then.rbegin();
    while (up != then.end()) {
        const bool much = random() % 100 == 0; // what they stand on might be freed, and used anew
        for (int i = 0; i < (much ? 3000 : 10); i++)
            write(keys, 400);
        REQUIRE(forward->valid());
        REQUIRE(forward->key() == up->first);
        REQUIRE(forward->value() == up->second);
        REQUIRE(backward->valid());
        REQUIRE(backward->key() == down->first);
        REQUIRE(backward->value() == down->second);
        forward->next();
        backward->prev();
        ++up;
        ++down;
        if (up != then.end() && random() % 50 == 0) { // turn around, twice
            forward->prev();
            forward->next();
            backward->next();
            backward->prev();
        }
    }
    REQUIRE_FALSE(forward->valid());
    REQUIRE_FALSE(backward->valid());
}

// Backwards, an iterator stands at the oldest version of the key before the one that it shows.
TEST_CASE_METHOD(Fixture, "a version on which an iterator stands is not freed")
{
    const std::string old(1000, 'o'), value(1000, 'v');
    store->put("a", old);
    for (int i = 0; i < 2000; i++)
        write(100, 1000);
    settled(*store); // "a" is in the container
    store->put("a", value);
    store->put("b", value);
    const auto at = store->iterator();
    at->seek("b");
    REQUIRE(at->key() == "b");
    at->prev();
    at->next();
    at->next();
    at->prev(); // and now backwards at "b"
    REQUIRE(at->key() == "b");
    for (int round = 0; round < 4; round++) { // merge, and use anew what was freed
        for (int i = 0; i < 1000; i++)
            write(100, 1000);
        settled(*store);
    }
    at->prev();
    REQUIRE(at->key() == "a");
    REQUIRE(at->value() == value);
}

TEST_CASE("one call moves and buries a bounded number of nodes")
{
    constexpr unsigned versions = 1000, most = 100;
    const lsm::Sequence oldest = GENERATE(lsm::Sequence{0}, lsm::sequence_max);
    lsm::Memtable newer, older, grave;
    std::atomic<uint64_t> moves = 0;
    for (unsigned i = 1; i <= versions; i++) {
        older.add(i, lsm::Kind::value, "key", "old");
        newer.add(versions + i, lsm::Kind::value, "key", "new");
    }
    const auto count = [](const lsm::Memtable &list) {
        unsigned n = 0;
        const auto at = list.cursor();
        for (at->seek_to_first(); at->valid(); at->next())
            n++;
        return n;
    };
    unsigned calls = 0, before = 2 * versions;
    for (; !newer.empty(); calls++) {
        const unsigned in_newer = count(newer);
        lsm::Memtable::move_nodes(newer, older, grave, oldest, most, moves);
        const unsigned now = count(newer) + count(older);
        REQUIRE(before - now <= most);
        REQUIRE(in_newer - count(newer) <= most);
        REQUIRE((newer.empty() ? older : newer).get("key", lsm::sequence_max)->value == "new");
        before = now;
    }
    REQUIRE(calls >= versions / most);
    REQUIRE(count(older) == (oldest == 0 ? 2 * versions : 1));
}

TEST_CASE("whatever moves, towers stay in order, and reads see what they saw")
{
    std::mt19937 random(GENERATE(range(1U, 200U)));
    const unsigned keys = 1 + random() % 400;
    Towers newer, older, grave;
    std::atomic<uint64_t> moves = 0;
    lsm::Sequence last = 0;
    using Version = std::pair<std::string, lsm::Sequence>;
    std::map<Version, std::string> written;
    for (Towers *list : {&older, &newer})
        for (unsigned n = random() % 500; n > 0; n--) {
            const Version version{"k" + std::to_string(random() % keys), ++last};
            const std::string value = std::to_string(last);
            list->add(last, lsm::Kind::value, version.first, value);
            written[version] = value;
        }
    const lsm::Sequence oldest = random() % (last + 2);
    while (!newer.empty()) {
        lsm::Memtable::move_nodes(newer, older, grave, oldest, 1 + random() % 100, moves);
        newer.check();
        older.check();
        for (unsigned n = 0; n < 50; n++) {
            const std::string key = "k" + std::to_string(random() % keys);
            const lsm::Sequence at = oldest + random() % (last + 2 - oldest);
            auto seen = written.upper_bound({key, at});
            const bool any = seen != written.begin() && (--seen)->first.first == key;
            auto found = newer.get(key, at);
            if (!found)
                found = older.get(key, at);
            REQUIRE(found.has_value() == any);
            REQUIRE((!any || found->value == seen->second));
        }
    }
}

TEST_CASE("a version that is in both lists is left in one")
{
    lsm::Memtable newer, older, grave;
    std::atomic<uint64_t> moves = 0;
    newer.add(5, lsm::Kind::value, "key", "value");
    older.add(5, lsm::Kind::value, "key", "value");
    const size_t bytes = grave.bytes();
    lsm::Memtable::move_nodes(newer, older, grave, GENERATE(lsm::Sequence{0}, lsm::sequence_max),
                              100, moves);
    REQUIRE(newer.empty());
    REQUIRE(older.get("key", 9)->value == "value");
    REQUIRE_FALSE(grave.empty()); // where it will be freed
    REQUIRE(grave.bytes() > bytes);
}

TEST_CASE("a cursor whose node has moved goes on in its own list")
{
    lsm::Memtable newer, older, grave;
    std::atomic<uint64_t> moves = 0;
    for (const char *key : {"a", "c", "e"})
        newer.add(2, lsm::Kind::value, key, key);
    for (const char *key : {"b", "d"})
        older.add(1, lsm::Kind::value, key, key);
    const auto at = newer.cursor(), whole = newer.cursor();
    at->seek_to_first();
    lsm::Memtable::move_nodes(newer, older, grave, 9, 1, moves);
    REQUIRE(at->value() == "a");
    at->next();
    REQUIRE(at->value() == "c");
    lsm::Memtable::move_nodes(newer, older, grave, 9, 1, moves);
    at->prev();
    REQUIRE_FALSE(at->valid());
    REQUIRE(moves == 2);
    const auto all = older.cursor();
    std::string values;
    for (all->seek_to_first(); all->valid(); all->next())
        values += all->value();
    REQUIRE(values == "abcd");
}

// A get may take long. Until it ends, a merge frees no version that the get could see at its beginning.
TEST_CASE_METHOD(Fixture, "a get that is overtaken by a merge finds what it pinned")
{
    store->put("overwritten", "before");
    for (int i = 0; i < 2000; i++)
        write(500, 400);
    settled(*store); // it is in the container
    before_search = [&] {
        store->put("overwritten", "after");
        for (int i = 0; i < 4000; i++)
            write(500, 400);
        settled(*store);
    };
    REQUIRE(store->get("overwritten") == "before");
    REQUIRE(store->get("overwritten") == "after");
}

TEST_CASE_METHOD(Fixture, "versions that nobody needs are freed")
{
    const unsigned writes = test::repetitions(20000, 40000); // of 1000 bytes
    for (unsigned i = 0; i < writes; i++)
        write(100, 1000);
    const Lists now = settled(*store);
    REQUIRE(now.count > 0);
    REQUIRE(now.bytes < 2 << 20);
    compare(*store, model);
    // Freed in the container too: it need not grow for as much again.
    const auto file_bytes = [&] { return std::filesystem::file_size(path + "/memtables.pm"); };
    const auto before = file_bytes();
    for (unsigned i = 0; i < writes; i++)
        write(100, 1000);
    settled(*store);
    REQUIRE(file_bytes() < before + (4 << 20));
}

TEST_CASE("if the container is full, the oldest list becomes a table")
{
    test::Directory directory;
    lsm::Options options = merging();
    options.container_bytes = 8 << 20;
    auto store = lsm::Store::open(directory / "s", options);
    for (int i = 0; i < 30000; i++)
        store->put(std::to_string(i), std::string(1000, 'v'));
    for (int i = 0; i < 30000; i += 100)
        REQUIRE(store->get(std::to_string(i)) == std::string(1000, 'v'));
    REQUIRE(store->property("levels")->substr(0, 4) != "0 0 ");
    store->check();

    // With an iterator that keeps all lists a write fails, and does not wait for ever.
    auto at = store->iterator();
    const auto write = [&] {
        for (int i = 0; i < 30000; i++)
            store->put(std::to_string(i), std::string(1000, 'w'));
    };
    REQUIRE_THROWS_WITH(write(), Catch::Contains("max_size"));
    at.reset();
    write();
    REQUIRE(store->get("29999") == std::string(1000, 'w'));
}

TEST_CASE("a container has room for sixteen lists at least")
{
    test::Directory directory;
    lsm::Options options = merging();
    options.container_bytes = 16 * options.memtable_bytes - 1;
    REQUIRE_THROWS_WITH(lsm::Store::open(directory / "s", options),
                        Catch::Contains("container_bytes"));
    options.container_bytes++;
    auto store = lsm::Store::open(directory / "s", options);
    for (int i = 0; i < 3000; i++)
        store->put(std::to_string(i), std::string(1000, 'v'));
    REQUIRE(store->get("2999"));
}

TEST_CASE("if there is no room for a merge, the background rests")
{
    test::Directory directory;
    lsm::Options options = merging();
    options.container_bytes = 4 << 20;
    auto store = lsm::Store::open(directory / "s", options);
    for (int i = 0; i < 8000;) {
        for (const int end = i + 250; i < end; i++)
            store->put(std::to_string(i), std::string(1000, 'v'));
        bool rests = false;
        for (int wait = 0; wait < 200 && !rests; wait++) { // until tables are merged, too
            const clock_t before = clock();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            rests = clock() - before < CLOCKS_PER_SEC / 200;
        }
        REQUIRE(rests);
    }
}

TEST_CASE_METHOD(Fixture, "a merge copies no values")
{
    constexpr uint64_t nodes = 4000, value_bytes = 4096;
    const auto logged = [&] { return std::stoull(*store->property("container_log")); };
    for (uint64_t i = 0; i < nodes; i++)
        store->put(std::to_string(random()), std::string(value_bytes, 'v'));
    REQUIRE(settled(*store).count < 8); // of 60
    const uint64_t bytes = logged();
    INFO(bytes << " bytes logged");
    if (test::engine() == "log")
        REQUIRE(bytes < nodes * value_bytes + nodes * 3000); // the values once, and pointers for six merges
    else
        REQUIRE(bytes < nodes * 3000);
}

// Two lists without a store, one node a step. Of each key the newer list has three versions, and the older list
// one. Nothing is buried, since a read at 0 may want it.
TEST_CASE("no reader misses a pair that moves")
{
    constexpr unsigned keys = 1000;
    const unsigned rounds = test::repetitions(10, 30);
    const auto name = [](unsigned k) { return "key" + std::to_string(1000 + k); };
    std::mt19937 random(1);
    for (unsigned round = 0; round < rounds; round++) {
        lsm::Memtable newer, older, grave;
        std::atomic<uint64_t> moves = 0;
        std::atomic<bool> stop = false, failed = false;
        for (unsigned k = 0; k < keys; k++) {
            older.add(1, lsm::Kind::value, name(k), "old");
            for (lsm::Sequence version : {2, 3, 4})
                newer.add(version, lsm::Kind::value, name(k), std::to_string(version));
        }
        std::atomic<unsigned> moved = 0;
        const auto get = [&] { // keys near those that move now
            std::mt19937 draw(round);
            while (!stop) {
                const std::string key = name(std::min<unsigned>(moved / 3 + draw() % 4, keys - 1));
                auto found = newer.get(key, 9);
                if (!found)
                    found = older.get(key, 9);
                failed = failed || !found || found->value != "4";
            }
        };
        const auto scan = [&] { // all versions in order; what has just moved may come twice
            for (bool forward = true; !stop; forward = !forward) {
                lsm::Cursors cursors;
                cursors.push_back(newer.cursor());
                cursors.push_back(older.cursor());
                const auto at = lsm::merged(std::move(cursors), &moves);
                unsigned count = 0;
                std::string last;
                for (forward ? at->seek_to_first() : at->seek_to_last(); at->valid() && !stop;
                     forward ? at->next() : at->prev()) {
                    count += last != at->key();
                    last = at->key();
                }
                failed = failed || (!stop && count != 4 * keys);
            }
        };
        {
            std::jthread getter(get), scanner(scan);
            for (; !newer.empty(); moved++)
                lsm::Memtable::move_nodes(newer, older, grave, 0, 1, moves);
            stop = true;
        }
        REQUIRE_FALSE(failed);
        REQUIRE(grave.empty());
        REQUIRE_FALSE(newer.get(name(0), 9));
    }
}
