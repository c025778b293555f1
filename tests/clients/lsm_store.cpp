// The LSM store beside a map, in each mode: random writes, deletions, batches, snapshots, iterators and openings.
// Memtables and tables are so small that all levels are in use.
#include "common/fixture.hpp"

#include "clients/lsm_tiny.hpp"
#include "lsm/persistent.hpp"
#include "system/disk.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <unistd.h>

// Every fdatasync(2) of the store: the names of its files, and a way to keep tables from being finished.
namespace
{

std::mutex syncs_lock;
std::vector<std::string> synced;
std::set<std::string> synced_directories;
std::vector<std::string> durable_names; // of the files that were there at the last fsync(2) of a directory
std::atomic<int> commits_to_go{0};
std::atomic<size_t> synced_before{0}; // how many there were when none was left to go
std::atomic<bool> tables_wait{false};
std::atomic<bool> commits_fail{false}; // of containers; pm_commit() then does nothing
std::atomic<unsigned> commits{0}, rollbacks{0};

} // namespace

extern "C" int __real_fdatasync(int fd);
extern "C" int __wrap_fdatasync(int fd)
{
    const std::string name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
    while (tables_wait && name.ends_with(".table"))
        usleep(1000);
    std::lock_guard guard(syncs_lock);
    synced.push_back(name);
    return __real_fdatasync(fd);
}

extern "C" int __real_fsync(int fd);
extern "C" int __wrap_fsync(int fd)
{
    const std::string name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
    if (std::filesystem::is_directory(name)) {
        std::lock_guard guard(syncs_lock);
        synced_directories.insert(name);
        durable_names.clear();
        for (const auto &entry : std::filesystem::directory_iterator(name))
            durable_names.push_back(entry.path());
    }
    return __real_fsync(fd);
}

extern "C" int __real_pm_commit(pm_container *c);
extern "C" int __wrap_pm_commit(pm_container *c)
{
    commits++;
    {
        std::lock_guard guard(syncs_lock);
        if (commits_to_go > 0 && --commits_to_go == 0)
            synced_before = synced.size();
    }
    if (!commits_fail)
        return __real_pm_commit(c);
    errno = ENOSPC;
    return -1;
}

extern "C" int __real_pm_rollback(pm_container *c);
extern "C" int __wrap_pm_rollback(pm_container *c)
{
    rollbacks++;
    return __real_pm_rollback(c);
}

namespace
{

// Lets tables wait as long as it lives. It must go before the store, which waits for them when it closes.
struct TablesWait {
    TablesWait() { tables_wait = true; }
    ~TablesWait() { tables_wait = false; }
};

void put(lsm::PersistentMemtable &memtable, const std::string &key, lsm::Sequence sequence)
{
    lsm::Container::Hold hold(memtable.container());
    lsm::Memtable::Node *node =
        memtable.make(lsm::tagged(key, sequence, lsm::Kind::value), std::string(100, 'v'));
    memtable.reserve(lsm::Memtable::height(node));
    memtable.link(node);
    memtable.commit(sequence, false);
}

std::string only_file(const std::string &directory, const std::string &ending)
{
    std::string found;
    for (const auto &entry : std::filesystem::directory_iterator(directory))
        if (entry.path().string().ends_with(ending) && std::filesystem::file_size(entry.path()) > 0)
            found = entry.path();
    REQUIRE(!found.empty());
    return found;
}

void flip(const std::string &path, uint64_t offset)
{
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
}

} // namespace

TEST_CASE("a store has what a map has")
{
    test::Directory directory;
    lsm::Options options = tiny(GENERATE(from_range(all_modes)));
    options.compression =
        GENERATE(lsm::Compression::none, lsm::Compression::zstd, lsm::Compression::snappy);
    options.bloom_bits = options.compression == lsm::Compression::none ? 10 : 0;
    options.read_workers = options.compression == lsm::Compression::snappy ? 2 : 0;
    std::mt19937_64 random(options.bloom_bits + 1);
    const auto draw = [&](uint64_t n) { return random() % n; };
    auto store = lsm::Store::open(directory.path(), options);
    Model model, then;
    std::unique_ptr<lsm::Snapshot> snapshot;
    unsigned levels = 0; // at most in use: in the end all may have come to the last one
    for (unsigned i = 0, steps = test::repetitions(12000, 30000); i < steps; i++) {
        const std::string key = key_of(draw(3000)),
                          value(draw(300), static_cast<char>('a' + draw(26)));
        switch (draw(100)) {
        default:
            store->put(key, value);
            model[key] = value;
            break;
        case 0 ... 19:
            store->remove(key);
            model.erase(key);
            break;
        case 20 ... 29: {
            lsm::Batch batch;
            for (int k = 0; k < 5; k++) {
                const std::string other = key_of(draw(3000));
                batch.put(other, value);
                batch.remove(key);
                model[other] = value;
                model.erase(key);
            }
            store->write(batch, {.sync = draw(10) == 0});
            break;
        }
        case 30 ... 50: {
            auto found = store->get(key);
            auto expected = model.find(key);
            REQUIRE(found.has_value() == (expected != model.end()));
            if (found)
                REQUIRE(*found == expected->second);
        }
        }
        if (i % 100 == 0)
            levels = std::max<unsigned>(levels, levels_in_use(*store));
        if (i % 3001 == 3000) {
            if (snapshot)
                compare(*store, then, snapshot.get());
            snapshot = store->snapshot();
            then = model;
        }
        if (i % 5001 == 5000) {
            snapshot.reset();
            store.reset();
            store = lsm::Store::open(directory.path(), options);
            compare(*store, model);
        }
    }
    compare(*store, model);
    const bool has_tables = options.memtables != Memtables::persistent_only;
    const unsigned least = options.memtables == Memtables::dram ? 2 : has_tables;
    REQUIRE(levels >= least);
    store->check();
    snapshot.reset();
    store.reset();
    options.level_bytes = 64 << 20; // else tables go on to the next level at once
    store = lsm::Store::open(directory.path(), options);
    store->compact();
    REQUIRE(levels_in_use(*store) == has_tables);
    compare(*store, model);
    store.reset();
    store = lsm::Store::open(directory.path());
    compare(*store, model);

    auto at = store->iterator();
    for (int i = 0; i < 300; i++) {
        const std::string key = key_of(draw(4000));
        at->seek(key);
        auto expected = model.lower_bound(key);
        REQUIRE(at->valid() == (expected != model.end()));
        for (int step = 0; step < 10 && at->valid(); step++) { // back and forth
            REQUIRE((at->key() == expected->first && at->value() == expected->second));
            if (draw(2) == 0) {
                at->next();
                ++expected;
            } else {
                at->prev();
                if (expected == model.begin())
                    break;
                --expected;
            }
        }
    }
}

TEST_CASE("an iterator and a snapshot see their moment while the store is compacted")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), tiny(GENERATE(from_range(all_modes))));
    Model model;
    for (uint64_t i = 0; i < 3000; i++)
        store->put(key_of(i), model[key_of(i)] = std::string(200, 'a'));
    auto snapshot = store->snapshot();
    auto at = store->iterator();
    for (uint64_t i = 0; i < 3000; i++)
        i % 2 ? store->remove(key_of(i)) : store->put(key_of(i), "new");
    store->compact();
    compare(*store, model, snapshot.get());
    at->seek_to_first();
    for (const auto &[key, value] : model) {
        REQUIRE((at->valid() && at->key() == key && at->value() == value));
        at->next();
    }
    REQUIRE(*store->get(key_of(0), snapshot.get()) == std::string(200, 'a'));
    at.reset();
    snapshot.reset();
    store->compact();
    REQUIRE(store->get(key_of(2)) == "new");
    REQUIRE(store->get(key_of(1)) == std::nullopt);
}

TEST_CASE("a store opens in every mode, whichever mode wrote it")
{
    test::Directory directory;
    const Memtables wrote = GENERATE(from_range(all_modes)),
                    reads = GENERATE(from_range(all_modes));
    Model model;
    for (unsigned turn = 0; turn < test::repetitions(2, 3); turn++) {
        for (const Memtables mode : {wrote, reads}) {
            auto store = lsm::Store::open(directory.path(), tiny(mode));
            compare(*store, model);
            churn(*store, model, turn, 2500);
            compare(*store, model);
        }
    }
    lsm::Options options = tiny();
    options.level_bytes = 64 << 20; // else tables go on to the next level at once
    auto store = lsm::Store::open(directory.path(), options);
    store->compact();
    compare(*store, model);
    REQUIRE(levels_in_use(*store) == 1);
}

namespace
{

// In their order. Empty ones are not in use: a log that was made ready too late is deleted in a moment.
std::vector<std::string> files_in_use(const std::string &directory)
{
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(directory)) {
        std::error_code error;
        if (entry.file_size(error) > 0 && !error)
            names.push_back(entry.path());
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> logs_in_use(const std::string &directory)
{
    std::vector<std::string> names = files_in_use(directory);
    std::erase_if(names, [](const std::string &name) { return !name.ends_with(".log"); });
    return names;
}

// What a power failure would leave now, if all writes so far are durable.
void copy_store(const std::string &from, const std::string &to)
{
    std::filesystem::create_directory(to);
    for (const std::string &file : files_in_use(from))
        std::filesystem::copy(file, to);
}

} // namespace

// Else a power failure could keep this write and lose an earlier one, of the memtable before.
TEST_CASE("a write with sync makes the log before durable, too")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), tiny());
    const TablesWait wait;
    for (uint64_t i = 0; logs_in_use(directory.path()).size() < 2; i++)
        store->put(key_of(i), std::string(1000, 'v'));
    {
        std::lock_guard guard(syncs_lock);
        synced.clear();
    }
    store->put("last", "value", {.sync = true});
    std::lock_guard guard(syncs_lock);
    for (const std::string &log : logs_in_use(directory.path()))
        CHECK(std::find(synced.begin(), synced.end(), log) != synced.end());
}

TEST_CASE("the name of a new store is durable")
{
    test::Directory directory;
    const auto parent = std::filesystem::canonical(directory.path());
    REQUIRE(synced_directories.count(parent) == 0);
    auto store = lsm::Store::open(directory / "new", tiny());
    REQUIRE(synced_directories.count(parent) == 1);
}

// Else a power failure could lose the file with a write that was acknowledged.
TEST_CASE("the name of a log is durable before a write with sync has returned")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), tiny());
    const TablesWait wait; // for each syncs the directory, too
    for (uint64_t i = 0; logs_in_use(directory.path()).size() < 2; i++) {
        store->put(key_of(i), std::string(1000, 'v'), {.sync = true});
        for (const std::string &log : logs_in_use(directory.path())) {
            INFO(log);
            std::lock_guard guard(syncs_lock);
            CHECK(std::count(durable_names.begin(), durable_names.end(), log) == 1);
        }
    }
}

// A process may write the manifest's last edit and die before it syncs it. The next opening deletes the logs and
// tables that this edit has replaced.
TEST_CASE("an opening syncs the manifest that it goes on with")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), tiny());
    store->put("key", "value"); // so little that the background has nothing to do at the opening
    store->compact();
    store.reset();
    {
        std::lock_guard guard(syncs_lock);
        synced.clear();
    }
    store = lsm::Store::open(directory.path(), tiny());
    std::lock_guard guard(syncs_lock);
    CHECK(std::any_of(synced.begin(), synced.end(), [](const std::string &name) {
        return name.find("/MANIFEST-") != name.npos;
    }));
}

// Else a power failure could keep these writes in the container and lose earlier ones of the log.
TEST_CASE("a log is durable before its writes are moved to the container")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), tiny(Memtables::immutable_persistent));
    {
        std::lock_guard guard(syncs_lock);
        synced.clear();
        commits_to_go = 3; // the first makes a list, and the next ones move writes there
    }
    for (uint64_t i = 0; commits_to_go > 0; i++)
        store->put(key_of(i), std::string(1000, 'v'));
    store.reset();
    std::lock_guard guard(syncs_lock);
    CHECK(std::any_of(synced.begin(), synced.begin() + static_cast<long>(synced_before.load()),
                      [](const std::string &name) { return name.ends_with(".log"); }));
}

TEST_CASE(
    "an iterator that went back to a key does not show it again after one that was written since")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), tiny());
    store->put("a", "1");
    store->put("c", "3");
    auto at = store->iterator();
    at->seek_to_last();
    REQUIRE(at->key() == "c");
    store->put("b", "2");
    at->next();
    REQUIRE_FALSE(at->valid());
    at->seek_to_last();
    at->prev();
    REQUIRE(at->key() == "a");
}

TEST_CASE(
    "a file PLACES that lacks a line is an error, and so is a fast directory of another store")
{
    test::Directory directory;
    const std::string path = directory / "s", places = path + "/PLACES", fast = directory / "fast";
    lsm::Options options = tiny(Memtables::persistent_only);
    options.fast_directory = fast;
    options.fast_levels = 2;
    lsm::Store::open(path, options)->put("key", "value", {.sync = true});
    std::ifstream file(places);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const std::string &damaged :
         {std::string(), text.substr(0, text.find("fast")), text.substr(text.find("fast"))}) {
        std::ofstream(places) << damaged;
        REQUIRE_THROWS_WITH(lsm::Store::open(path), Catch::Contains("PLACES"));
    }
    std::filesystem::remove(places);
    REQUIRE_THROWS_WITH(lsm::Store::open(path), Catch::Contains("PLACES"));
    std::ofstream(places) << text;
    REQUIRE(lsm::Store::open(path)->get("key") == "value");

    lsm::Options others = tiny();
    others.fast_directory = fast;
    others.fast_levels = 1;
    REQUIRE_THROWS_WITH(lsm::Store::open(directory / "other", others),
                        Catch::Contains("another store"));
}

TEST_CASE("with upper levels in another directory a store has what it had, also when that changes")
{
    test::Directory directory;
    lsm::Options options = tiny(GENERATE(Memtables::dram, Memtables::mutable_persistent));
    options.fast_directory = directory / "fast";
    Model model;
    for (const unsigned levels : {2U, 0U, 4U, 1U}) {
        options.fast_levels = levels;
        auto store = lsm::Store::open(directory / "s", options);
        compare(*store, model);
        churn(*store, model, levels, 3000);
        compare(*store, model);
    }
    lsm::Store::open(directory / "s", options)->compact();
    compare(*lsm::Store::open(directory / "s"), model);
}

// A power failure may lose the end of one log and keep the next one.
TEST_CASE("writes behind one that was lost are gone, too; and a log that is missing is an error")
{
    test::Directory directory;
    const std::string path = directory / "s", copy = directory / "copy";
    auto store = lsm::Store::open(path, tiny());
    uint64_t writes = 0, in_first = 0;
    {
        const TablesWait wait;
        for (; logs_in_use(path).size() < 2; in_first = writes++)
            store->put("k" + std::to_string(writes), std::string(1000, 'v'));
        for (int i = 0; i < 10; i++)
            store->put("k" + std::to_string(writes++), "later");
        copy_store(path, copy);
    }
    store.reset();
    const std::string first = logs_in_use(copy)[0];
    SECTION("the end of a log is lost")
    {
        std::filesystem::resize_file(first, std::filesystem::file_size(first) - 1);
        store = lsm::Store::open(copy, tiny());
        for (uint64_t i = 0; i < writes; i++)
            REQUIRE(store->get("k" + std::to_string(i)).has_value() == (i + 1 < in_first));
    }
    SECTION("a write behind it asked for sync, so it was durable")
    {
        REQUIRE(writes > 0);
        store = lsm::Store::open(path, tiny());
        store.reset();
        std::filesystem::remove_all(copy);
        const std::string again = directory / "again";
        store = lsm::Store::open(again, tiny());
        {
            const TablesWait wait;
            for (uint64_t i = 0; logs_in_use(again).size() < 2; i++)
                store->put("k" + std::to_string(i), std::string(1000, 'v'));
            store->put("synced", "", {.sync = true});
            copy_store(again, copy);
        }
        store.reset();
        const std::string damaged = logs_in_use(copy)[0];
        std::filesystem::resize_file(damaged, std::filesystem::file_size(damaged) - 1);
        REQUIRE_THROWS_WITH(lsm::Store::open(copy, tiny()), Catch::Contains("damaged"));
    }
    SECTION("a log is missing")
    {
        std::filesystem::remove(first);
        REQUIRE_THROWS_WITH(lsm::Store::open(copy, tiny()),
                            Catch::Contains("writes from number 1 on is missing"));
    }
    REQUIRE(lsm::Store::open(path, tiny())->get("k" + std::to_string(writes - 1)) == "later");
}

TEST_CASE("bad input is refused, and nothing is lost")
{
    test::Directory directory;
    const std::string path = directory / "s";
    const auto error_of = [](auto &&call) {
        try {
            call();
        } catch (const lsm::Error &error) {
            return error.code().value();
        }
        return 0;
    };
    REQUIRE(error_of([&] { lsm::Store::open(path); }) == ENOENT);
    lsm::Options bad = tiny();
    bad.memtable_bytes = (256 << 10) - 1;
    REQUIRE(error_of([&] { lsm::Store::open(path, bad); }) == EINVAL);
    {
        auto store = lsm::Store::open(path, tiny());
        REQUIRE(error_of([&] { lsm::Store::open(path, tiny()); }) == EBUSY);
        store->put("", "empty key");
        store->put(std::string(lsm::key_max, 'k'), "long key");
        REQUIRE(error_of([&] { store->put(std::string(lsm::key_max + 1, 'k'), ""); }) == EINVAL);
        store->put("large", std::string(64 << 20, 'x'));
        lsm::Batch batch;
        for (int i = 0; i < 100000; i++)
            batch.put("b" + std::to_string(i), std::to_string(i));
        store->write(batch);
        REQUIRE(store->property("nothing") == std::nullopt);
    }
    {
        auto store = lsm::Store::open(path);
        REQUIRE(store->get("") == "empty key");
        REQUIRE(store->get("large")->size() == 64 << 20);
        REQUIRE(store->get("b99999") == "99999");
        store->compact();
        REQUIRE(store->get("large")->size() == 64 << 20);
    }
    std::filesystem::rename(path + "/CURRENT", path + "/lost");
    REQUIRE(error_of([&] { lsm::Store::open(path, tiny()); }) == EBADMSG);
    std::filesystem::rename(path + "/lost", path + "/CURRENT");
    REQUIRE(lsm::Store::open(path)->get("b1") == "1");
    const std::string table = only_file(path, ".table");
    std::filesystem::rename(table, path + "/lost");
    REQUIRE_THROWS_WITH(lsm::Store::open(path),
                        Catch::Contains(table) && Catch::Contains("restore it"));
    std::filesystem::rename(path + "/lost", table);
    REQUIRE(lsm::Store::open(path)->get("b1") == "1");
}

TEST_CASE("a store without its container is refused, as is a container of another store")
{
    test::Directory directory;
    const std::string path = directory / "s", other = directory / "other";
    lsm::Options options = tiny(Memtables::persistent_only), others = options;
    options.container = directory / "container";
    {
        auto store = lsm::Store::open(path, options);
        store->put("key", "value");
        others.container = options.container;
        REQUIRE_THROWS_WITH(lsm::Store::open(other, others), Catch::Contains("open for writing"));
    }
    REQUIRE_THROWS_WITH(lsm::Store::open(other, others), Catch::Contains("choose another path"));
    others.container = directory / "container2";
    lsm::Store::open(other, others)->put("key", "other");

    std::filesystem::rename(options.container, directory / "lost");
    REQUIRE_THROWS_WITH(lsm::Store::open(path),
                        Catch::Contains(options.container) && Catch::Contains("PLACES"));
    std::filesystem::rename(others.container, options.container);
    REQUIRE_THROWS_WITH(lsm::Store::open(path), Catch::Contains("another store"));
    std::filesystem::rename(directory / "lost", options.container);
    REQUIRE(lsm::Store::open(path)->get("key") == "value");
}

TEST_CASE("a full container refuses writes, and as tables take them it has room again")
{
    test::Directory directory;
    lsm::Options options = tiny(Memtables::persistent_only);
    options.container_bytes = 16 << 20;
    Model model;
    {
        auto store = lsm::Store::open(directory.path(), options);
        int code = 0;
        for (uint64_t i = 0; code == 0; i++)
            try {
                const std::string value(3000, static_cast<char>('a' + i % 26));
                store->put(key_of(i), value);
                model[key_of(i)] = value;
            } catch (const lsm::Error &error) {
                code = error.code().value();
            }
        REQUIRE(code == ENOSPC);
        REQUIRE(model.size() > 1000);
        compare(*store, model);
        REQUIRE_THROWS_AS(store->put("key", std::string(3000, 'x')), lsm::Error);
    }
    options.memtables = Memtables::mutable_persistent;
    auto store = lsm::Store::open(directory.path(), options);
    compare(*store, model);
    churn(*store, model, 1, 20000);
    compare(*store, model);
}

TEST_CASE("if a commit fails, no rollback takes what readers may stand on")
{
    test::Directory directory;
    const lsm::Options options = tiny(Memtables::persistent_only);
    {
        lsm::Container container(directory / "c", &options);
        const auto list = container.begin(1, 0);
        {
            const auto old = container.begin(2, 0);
            put(*old, "old", 2);
            old->drop();
        }
        rollbacks = 0;
        commits_fail = true;
        CHECK_THROWS_AS(put(*list, "new", 1), lsm::Error);
        CHECK_THROWS_AS(container.free_some(), lsm::Error);
        CHECK_THROWS_AS(container.begin(3, 0), lsm::Error);
        commits_fail = false;
        CHECK(rollbacks == 0);
        CHECK(list->get("new", 1));
        while (container.free_some())
            ;
    }
    lsm::Container container(directory / "c", nullptr);
    const auto lists = container.memtables();
    REQUIRE(lists.size() == 1);
    CHECK(lists[0]->last() == 1);
    CHECK(lists[0]->get("new", 1));
}

TEST_CASE(
    "a list that was dropped has no writes at the next opening, though nobody has freed it yet")
{
    test::Directory directory;
    const lsm::Options options = tiny(Memtables::persistent_only);
    {
        lsm::Container container(directory / "c", &options);
        const auto list = container.begin(2, 0);
        put(*list, "old", 2);
        list->drop();
    }
    lsm::Container container(directory / "c", nullptr);
    const auto lists = container.memtables();
    REQUIRE(lists.size() == 1);
    CHECK(lists[0]->last() < lists[0]->first());
}

TEST_CASE("a store that is broken frees nothing")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory / "s", tiny(Memtables::mutable_persistent));
    const auto memtables = [&] { return *store->property("memtables"); };
    const auto fill_until = [&](auto holds) {
        for (uint64_t i = 0; !holds(); i++)
            store->put(key_of(i), std::string(1000, 'v'));
    };
    const auto is_first = [&] { return memtables().find("container") == 0; };
    std::unique_ptr<lsm::Iterator> reader; // keeps the memtables that there are
    {
        const TablesWait wait; // so that memtables in the container are used
        fill_until(is_first);
        reader = store->iterator();
    }
    fill_until([&] { return !is_first(); });
    // Else the container could have as many memtables as it may, and the last writes would wait for tables.
    while (std::ranges::count(memtables(), '\n') > 1)
        usleep(1000);
    {
        const TablesWait wait;
        fill_until(is_first);
        commits_fail = true;
        CHECK_THROWS_AS(store->put("k", "v"), lsm::Error);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // for steps that had begun
    const unsigned before = commits;
    reader.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(1500)); // the keeper looks once a second
    CHECK(commits == before);
    commits_fail = false;
}

TEST_CASE("a torn tail of the log is cut off, and damage before it is an error")
{
    test::Directory directory;
    const std::string path = directory / "s";
    {
        auto store = lsm::Store::open(path, tiny());
        for (int i = 0; i < 100; i++)
            store->put(key_of(static_cast<uint64_t>(i)), "value");
    }
    const std::string log = only_file(path, ".log");
    const uint64_t size = std::filesystem::file_size(log);
    SECTION("torn")
    {
        constexpr uint64_t last = 20 + 12 + 1 + 1 + 5 + 1 + 5; // bytes of the last record
        const uint64_t kept = GENERATE(UINT64_C(0), UINT64_C(1), UINT64_C(19), last - 1);
        std::filesystem::resize_file(log, size - last + kept);
        auto store = lsm::Store::open(path);
        REQUIRE(store->get(key_of(98)) == "value");
        REQUIRE(store->get(key_of(99)) == std::nullopt);
    }
    SECTION("damaged")
    {
        flip(log, GENERATE_COPY(0, 9, size / 2));
        REQUIRE_THROWS_WITH(lsm::Store::open(path),
                            Catch::Contains(log + ": offset") && Catch::Contains("backup"));
    }
}

TEST_CASE("a damaged block is an error where it is read, and nowhere else")
{
    test::Directory directory;
    const std::string path = directory / "s";
    lsm::Options options = tiny();
    options.table_bytes = 8 << 20;
    {
        auto store = lsm::Store::open(path, options);
        for (int i = 0; i < 2000; i++)
            store->put("k" + std::to_string(10000 + i), std::string(100, 'v'));
        store->compact();
    }
    flip(only_file(path, ".table"), 0);
    auto store = lsm::Store::open(path);
    REQUIRE_THROWS_WITH(store->get("k10000"), Catch::Contains("offset 0"));
    REQUIRE(store->get("k11999"));
    REQUIRE_THROWS_AS(store->check(), lsm::Error);
}

TEST_CASE("a compressed block, and the index of a table, may be as large as the options make them")
{
    test::Directory directory;
    lsm::Options options;
    options.create = true;
    options.memtable_bytes = size_t{3} << 30; // one table takes all
    SECTION("a block with one more value than block_bytes")
    {
        options.compression = lsm::Compression::zstd;
        options.block_bytes = 4 << 20;
        auto store = lsm::Store::open(directory / "s", options);
        store->put("a", std::string(3 << 20, 'x'));
        store->put("b", std::string(lsm::value_max, 'y'));
        store->compact();
        REQUIRE(store->get("a")->size() == 3 << 20);
        REQUIRE(store->get("b")->size() == lsm::value_max);
    }
    SECTION("an index, in which each long key stands for a block")
    {
        options.compression = lsm::Compression::snappy;
        auto store = lsm::Store::open(directory / "s", options);
        constexpr int count = 4200;
        const auto long_key = [](int i) {
            return std::to_string(10000 + i) + std::string(lsm::key_max - 5, 'k');
        };
        for (int i = 0; i < count; i++)
            store->put(long_key(i), "v");
        store->compact();
        REQUIRE(store->get(long_key(count - 1)) == "v");
    }
}

TEST_CASE("a list that took half of a memtable becomes a table, and so does the memtable")
{
    test::Directory directory;
    lsm::Options options = tiny(Memtables::immutable_persistent);
    options.memtable_bytes = 512 << 10;
    options.table_bytes = 8 << 20;
    options.persistent_bytes = 64 << 20;
    options.container_bytes = 4 << 20; // gets full during a move
    auto store = lsm::Store::open(directory / "s", options);
    store->put("first", "f");
    const auto snapshot = store->snapshot(); // so that merges keep all versions
    Model model;
    model["first"] = "f";
    for (int i = 0; i < 20000; i++) {
        const std::string key = key_of(static_cast<uint64_t>(i) * 7919 % 20011);
        store->put(key, model[key] = std::string(150, static_cast<char>('a' + i % 26)));
    }
    store->compact();
    compare(*store, model);
    store->check();
}

TEST_CASE("on a full disk writes fail, reads go on, and with room again so do writes", "[disk]")
{
    test::Disk disk(16 << 20);
    const Memtables mode = GENERATE(from_range(all_modes));
    CAPTURE(static_cast<int>(mode));
    auto store = lsm::Store::open(disk / "s", tiny(mode));
    Model model;
    uint64_t i = 0, refused = 0;
    const auto put = [&](uint64_t count) {
        for (const uint64_t end = i + count; i < end; i++) {
            const std::string key = key_of(i % 5000),
                              value = std::to_string(i) + std::string(500, 'v');
            try {
                store->put(key, value);
                model[key] = value;
            } catch (const lsm::Error &error) {
                REQUIRE(error.code().value() == ENOSPC);
                REQUIRE(std::string(error.what()).find("free disk space") != std::string::npos);
                refused++;
            }
        }
    };
    put(3000);
    REQUIRE(refused == 0);
    // The background gives back files that it has merged, also just after the disk was filled: fill it again.
    for (int round = 0; refused == 0 && round < 30; round++) {
        try {
            disk.fill();
        } catch (const std::runtime_error &) { // the background was taking and giving back room
        }
        put(1000);
    }
    REQUIRE(refused > 0);
    compare(*store, model);
    disk.free_all();
    for (int round = 0; round < 100; round++) { // the background tries again each second
        refused = 0;
        put(3000);
        if (refused == 0)
            break;
        usleep(100000);
    }
    REQUIRE(refused == 0);
    compare(*store, model);
    store.reset();
    store = lsm::Store::open(disk / "s");
    compare(*store, model);
    store->check();
}
