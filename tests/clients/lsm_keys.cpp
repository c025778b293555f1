// Mode `key_lsm` of the LSM store, which keeps keys apart from values. What is written and read where is
// counted. Then come the garbage of value files, the budget of the container, and damage.
#include "clients/lsm_tiny.hpp"
#include "lsm/budget.hpp"
#include "lsm/values.hpp"
#include "system/disk.hpp"

#include <libpm.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>
#include <unistd.h>

// What the store does with its files, the container excepted: bytes and calls, by the end of a file's name.
namespace
{

struct Traffic {
    uint64_t written = 0, writes = 0, read = 0, reads = 0, syncs = 0;
};

std::mutex traffic_lock;
std::map<std::string, Traffic> traffic;
std::string order; // of syncs of value files, of syncs of directories, and of commits: v, d, c

// NULL: the container, or no file of a store.
Traffic *traffic_of(int fd)
{
    const std::filesystem::path path =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
    const std::string name = path.extension().empty() ? path.filename() : path.extension();
    return name == ".pm" ? nullptr : &traffic[name];
}

template <class Note> void note(int fd, Note note)
{
    std::lock_guard guard(traffic_lock);
    if (Traffic *of_file = traffic_of(fd))
        note(*of_file);
}

std::map<std::string, Traffic> taken_traffic()
{
    std::lock_guard guard(traffic_lock);
    return std::exchange(traffic, {});
}

} // namespace

// Writes to tables wait, if they are to. And so many find the disk full.
static std::atomic<bool> tables_wait{false}, a_table_waits{false};
static std::atomic<unsigned> full_disks{0};

static bool finds_disk_full(int fd)
{
    const std::string path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
    if (!path.ends_with(".table"))
        return false;
    for (; tables_wait; usleep(100))
        a_table_waits = true;
    if (full_disks == 0)
        return false;
    full_disks--;
    errno = ENOSPC;
    return true;
}

extern "C" ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
extern "C" ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at)
{
    if (finds_disk_full(fd))
        return -1;
    note(fd, [&](Traffic &t) {
        t.written += bytes;
        t.writes++;
    });
    return __real_pwrite(fd, from, bytes, at);
}

extern "C" ssize_t __real_pread(int fd, void *to, size_t bytes, off_t at);
extern "C" ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at)
{
    note(fd, [&](Traffic &t) {
        t.read += bytes;
        t.reads++;
    });
    return __real_pread(fd, to, bytes, at);
}

extern "C" int __real_fdatasync(int fd);
extern "C" int __wrap_fdatasync(int fd)
{
    note(fd, [&](Traffic &t) {
        t.syncs++;
        if (&t == &traffic[".values"])
            order += 'v';
    });
    return __real_fdatasync(fd);
}

extern "C" int __real_fsync(int fd);
extern "C" int __wrap_fsync(int fd)
{
    {
        std::lock_guard guard(traffic_lock);
        order += 'd';
    }
    return __real_fsync(fd);
}

// Commits of the container that succeed from now on. The next is made, but says EIO, as libpm may. All later
// ones only say so.
static std::atomic<int64_t> commits_left{INT64_MAX};

extern "C" int __real_pm_commit(pm_container *c);
extern "C" int __wrap_pm_commit(pm_container *c)
{
    {
        std::lock_guard guard(traffic_lock);
        order += 'c';
    }
    const int64_t left = commits_left--;
    if (left > 0)
        return __real_pm_commit(c);
    if (left == 0)
        __real_pm_commit(c);
    errno = EIO;
    return -1;
}

namespace
{

lsm::Options keys_apart()
{
    lsm::Options options = tiny(Memtables::key_lsm);
    options.persistent_bytes = 64 << 20;
    return options;
}

std::vector<uint64_t> numbers(lsm::Store &store, const char *property)
{
    std::istringstream text(*store.property(property));
    std::vector<uint64_t> numbers;
    for (uint64_t number; text >> number;)
        numbers.push_back(number);
    return numbers;
}

uint64_t tables_below(lsm::Store &store, uint64_t level)
{
    const auto all = numbers(store, "levels"); // level, tables, bytes
    uint64_t count = 0;
    for (size_t i = 0; i < all.size(); i += 3)
        count += all[i] >= level ? all[i + 1] : 0;
    return count;
}

std::vector<std::filesystem::path> files(const std::string &directory, const char *ending)
{
    std::vector<std::filesystem::path> found;
    for (const auto &entry : std::filesystem::directory_iterator(directory))
        if (entry.path().extension() == ending)
            found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
}

uint64_t bytes_of_values(const std::string &directory)
{
    uint64_t bytes = 0;
    for (const auto &file : files(directory, ".values")) {
        std::error_code gone; // meanwhile
        const auto size = std::filesystem::file_size(file, gone);
        bytes += gone ? 0 : size;
    }
    return bytes;
}

// The background works on its own time.
template <class Holds> bool soon(Holds holds)
{
    for (int tries = 0; tries < 1000; tries++, usleep(10000))
        if (holds())
            return true;
    return false;
}

std::string value_at(uint64_t i)
{
    return std::to_string(i) + std::string(100 + i % 900, 'v');
}

Model filled(lsm::Store &store, uint64_t count)
{
    Model model;
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < count; i++) {
        const std::string key = "key" + std::to_string(random() % (4 * count));
        store.put(key, model[key] = value_at(i));
    }
    return model;
}

} // namespace

TEST_CASE("each value is written to the disk once, and a merge of tables does nothing there")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    auto store = lsm::Store::open(directory.path(), options);
    taken_traffic();
    uint64_t bytes = 0;
    Model model;
    for (uint64_t i = 0; i < 6000; i++) { // each key once, in no order
        const std::string key = "key" + std::to_string(i * 7919 % 6000);
        store->put(key, model[key] = value_at(i));
        bytes += lsm::Address{0, 0, value_at(i).size()}.space();
    }
    store->compact();
    REQUIRE(tables_below(*store, 1) > 1);
    REQUIRE(numbers(*store, "merging").front() > 0);
    const auto seen = taken_traffic();
    for (const auto &[name, of_file] : seen) {
        INFO(name);
        REQUIRE(of_file.reads == 0);
        REQUIRE((name == ".values" || of_file.writes + of_file.syncs == 0));
    }
    REQUIRE(seen.at(".values").written == bytes);
    REQUIRE(seen.at(".values").syncs == files(directory.path(), ".values").size());
    REQUIRE(bytes_of_values(directory.path()) == bytes);
    REQUIRE(files(directory.path(), ".table").empty());
    REQUIRE(files(directory.path(), ".log").empty());
    compare(*store, model);
    store->check();
}

TEST_CASE("values and their names are durable before a commit has their addresses")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), keys_apart());
    filled(*store, 300);
    REQUIRE(files(directory.path(), ".values").empty());
    {
        std::lock_guard guard(traffic_lock);
        order.clear();
    }
    store->compact();
    std::lock_guard guard(traffic_lock);
    REQUIRE(order.find("vdcc") != std::string::npos); // the table, and the edit of the manifest
    REQUIRE(order.rfind('v') < order.find("dcc"));
}

TEST_CASE("a get reads its value once, and keys are read without values")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), keys_apart());
    const Model model = filled(*store, 3000);
    store->compact();
    taken_traffic();
    for (auto at = model.begin(); at != model.end(); ++at) {
        REQUIRE(store->get(at->first) == at->second);
        REQUIRE(store->get(at->first + "x") == std::nullopt);
        const auto seen = taken_traffic();
        REQUIRE(seen.size() == 1);
        REQUIRE(seen.at(".values").reads == 1);
        REQUIRE(seen.at(".values").read == lsm::Address{0, 0, at->second.size()}.space());
    }
    auto walk = store->iterator();
    uint64_t count = 0;
    for (walk->seek_to_first(); walk->valid(); walk->next())
        count++;
    REQUIRE(count == model.size());
    REQUIRE(taken_traffic().empty());
    walk->seek_to_first();
    REQUIRE(walk->value() == walk->value());
    REQUIRE(taken_traffic().at(".values").reads == 1);
}

TEST_CASE("a value of 31 bytes stays with its key, and one of 32 does not")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), keys_apart());
    Model model;
    for (size_t bytes = 0; bytes < 40; bytes++)
        store->put("key" + std::to_string(bytes),
                   model["key" + std::to_string(bytes)] = std::string(bytes, 'v'));
    store->compact();
    uint64_t apart = 0;
    for (size_t bytes = lsm::apart_min; bytes < 40; bytes++)
        apart += lsm::Address{0, 0, bytes}.space();
    REQUIRE(lsm::apart_min == 32);
    REQUIRE(bytes_of_values(directory.path()) == apart);
    compare(*store, model);
}

TEST_CASE("garbage is collected by hand, but not what a snapshot or an iterator sees")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    options.garbage_share = 1;
    auto store = lsm::Store::open(directory.path(), options);
    const Model then = filled(*store, 3000);
    auto snapshot = store->snapshot();
    auto walk = store->iterator();
    Model now;
    for (const auto &[key, value] : then)
        if (key.back() % 2)
            store->put(key, now[key] = "now " + value);
        else
            store->remove(key);
    store->compact();
    store->collect();
    compare(*store, then, snapshot.get());
    compare(*store, now);
    snapshot.reset();
    store->compact();
    store->collect();
    walk->seek_to_first();
    for (const auto &[key, value] : then) {
        REQUIRE((walk->valid() && walk->key() == key && walk->value() == value));
        walk->next();
    }
    REQUIRE_FALSE(walk->valid());
    walk.reset();

    // All files of before are gone now, and what is there is needed.
    churn(*store, now, 1, 1);
    store->compact();
    store->collect();
    REQUIRE(
        soon([&] { return bytes_of_values(directory.path()) == numbers(*store, "values")[2]; }));
    compare(*store, now);
    store->check();
    store.reset();
    store = lsm::Store::open(directory.path(), options);
    compare(*store, now);
}

TEST_CASE("files whose garbage was collected are deleted at once")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    options.garbage_share = 1;
    auto store = lsm::Store::open(directory.path(), options);
    Model model;
    unsigned late = 0;
    for (unsigned turn = 0; turn < 10; turn++) {
        churn(*store, model, turn, 1000);
        store->compact();
        store->collect();
        const auto since = std::chrono::steady_clock::now();
        REQUIRE(soon(
            [&] { return bytes_of_values(directory.path()) == numbers(*store, "values")[1]; }));
        late += std::chrono::steady_clock::now() - since > std::chrono::milliseconds(500);
    }
    REQUIRE(late <= 2); // once a second the keeper looks anyway; the machine may be slow
}

TEST_CASE("collecting by hand also finds what tables of level 0 have overwritten")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    options.garbage_share = 1;
    auto store = lsm::Store::open(directory.path(), options);
    const auto put_all = [&](char with) {
        for (unsigned i = 0; i < 600; i++)
            store->put("key" + std::to_string(i), std::string(700, with));
    };
    put_all('a');
    store->compact();
    put_all('b');
    REQUIRE(soon([&] {
        return numbers(*store, "levels")[1] > 0 &&
               store->property("memtables")->find('\n') + 1 == store->property("memtables")->size();
    }));
    const uint64_t before = numbers(*store, "values")[2];
    store->collect();
    REQUIRE(numbers(*store, "values")[2] < before);
    REQUIRE(numbers(*store, "values")[1] == numbers(*store, "values")[2]);
}

TEST_CASE("with random overwrites files of values have at most half as much again as is needed")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    auto store = lsm::Store::open(directory.path(), options);
    Model model;
    std::mt19937_64 random(3);
    uint64_t live = 0;
    for (uint64_t i = 0; i < 80000; i++) {
        const std::string key = "key" + std::to_string(random() % 16000);
        const std::string value = std::to_string(i) + std::string(500, 'v');
        live += value.size() - (model.contains(key) ? model[key].size() : 0);
        store->put(key, model[key] = value);
    }
    const auto bound = [&] { return 2 * bytes_of_values(directory.path()) <= 3 * live; };
    REQUIRE(soon(bound));
    compare(*store, model);
    store->check();
}

TEST_CASE("if the budget shrinks tables go to the disk as they are, and they come back")
{
    test::Directory directory;
    const lsm::Options options = keys_apart();
    auto store = lsm::Store::open(directory.path(), options);
    Model model = filled(*store, 12000);
    store->compact();
    const uint64_t all = numbers(*store, "container").front();
    REQUIRE(all > 4 * options.table_bytes);
    const uint64_t tables = tables_below(*store, 1);
    const auto in_container = [&] { return numbers(*store, "container").front(); };
    const auto on_disk = [&] { return files(directory.path(), ".table").size(); };

    store->set_persistent_bytes(0);
    REQUIRE(soon([&] { return in_container() == 0; }));
    REQUIRE(on_disk() == tables);
    REQUIRE(tables_below(*store, 1) == tables);
    uint64_t bytes = 0;
    for (const auto &file : files(directory.path(), ".table"))
        bytes += std::filesystem::file_size(file);
    REQUIRE(bytes == all);
    compare(*store, model);

    store->set_persistent_bytes(
        all); // it would be full: a level comes back if there is room to spare
    usleep(50000);
    REQUIRE(in_container() == 0);
    store->set_persistent_bytes(2 * all);
    REQUIRE(soon([&] { return in_container() == all && on_disk() == 0; }));
    compare(*store, model);

    // To and fro under load.
    std::atomic<bool> over{false};
    std::thread changes([&] {
        for (uint64_t i = 0; !over; i++, usleep(2000))
            store->set_persistent_bytes(i % 3 * all / 2);
    });
    for (unsigned turn = 0; turn < 4; turn++)
        churn(*store, model, turn, 4000);
    over = true;
    changes.join();
    store->set_persistent_bytes(0);
    REQUIRE(soon([&] { return in_container() == 0; }));
    compare(*store, model);
    store->check();
    store.reset();
    store = lsm::Store::open(directory.path(), options); // with the old budget
    store->compact();                                    // level 0 stays until it is merged
    REQUIRE(soon([&] { return in_container() > 0 && on_disk() == 0; }));
    compare(*store, model);
}

TEST_CASE("whatever the budget is, tables leave room for memtables in the container")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    options.persistent_bytes = 1 << 20;
    options.container_bytes = 4 * options.persistent_bytes + 16 * options.memtable_bytes;
    auto store = lsm::Store::open(directory.path(), options);
    const auto on_disk = [&] { return files(directory.path(), ".table").size(); };
    store->set_persistent_bytes(1 << 30); // more than it has
    Model model;
    for (uint64_t i = 0; i < 60000; i++) {
        const std::string key = std::to_string(i * 7919 % 60000) + std::string(80, 'k');
        store->put(key, model[key] = std::to_string(i));
    }
    store->compact();
    REQUIRE(on_disk() > 0);
    REQUIRE(numbers(*store, "container").front() < options.persistent_bytes);
    compare(*store, model);
    store->check();
    for (const auto &[key, value] : model)
        store->remove(key);
    model.clear();
    filled(*store, 100);
    store->compact();
    REQUIRE(soon([&] { return on_disk() == 0; }));
}

TEST_CASE("the manifest in the container is made short while the store is open")
{
    test::Directory directory;
    const lsm::Options options = keys_apart();
    constexpr uint64_t most = 80 << 10; // a little more than when it is long
    const auto bytes = [&] {
        lsm::Container container(directory / "memtables.pm", nullptr);
        uint64_t bytes = 0;
        for (const std::string_view edit : container.edits())
            bytes += edit.size();
        return bytes;
    };
    Model model;
    uint64_t largest = 0;
    for (unsigned opening = 0; opening < 4; opening++) {
        auto store = lsm::Store::open(directory.path(), options);
        compare(*store, model);
        for (unsigned turn = 0; turn < 100; turn++) {
            churn(*store, model, turn, 20);
            store->compact();
        }
        compare(*store, model);
        store.reset();
        REQUIRE(bytes() < most);
        largest = std::max(largest, bytes());
    }
    REQUIRE(largest > most / 4);
}

TEST_CASE("if the disk is too full for tables that should leave, they leave when it has room",
          "[disk]")
{
    test::Directory memory;
    test::Disk disk(16 << 20);
    lsm::Options options = keys_apart();
    options.container = memory / "container";
    auto store = lsm::Store::open(disk / "s", options);
    const Model model = filled(*store, 6000);
    store->compact();
    const auto in_container = [&] { return numbers(*store, "container").front(); };
    REQUIRE(in_container() > 64 << 10);
    disk.fill();
    store->set_persistent_bytes(0);
    sleep(1);
    REQUIRE(in_container() > 0);
    disk.free_all();
    REQUIRE(soon([&] { return in_container() == 0; }));
    compare(*store, model);
}

TEST_CASE("whoever finds the disk full while tables are about to be deleted tries again then")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    options.persistent_bytes = 0;
    options.garbage_share = 1;
    auto store = lsm::Store::open(directory.path(), options);
    Model model = filled(*store, 1000);
    for (unsigned turn = 0; turn < 6; turn++) { // in some the keeper is faster
        churn(*store, model, turn, 1000);
        store->compact();
        auto walk = store->iterator();
        store->collect(); // the old tables stay for the iterator
        churn(*store, model, turn, 100);
        a_table_waits = false;
        tables_wait = true;
        int code = 0;
        auto compaction = std::async(std::launch::async, [&] {
            try {
                store->compact();
            } catch (const lsm::Error &error) {
                code = error.code().value();
            }
        });
        REQUIRE(soon([&] { return a_table_waits.load(); }));
        walk.reset();
        full_disks = 2; // the flusher tries again at once if anything was wanted meanwhile
        tables_wait = false;
        const auto ended = compaction.wait_for(std::chrono::seconds(10));
        store->set_persistent_bytes(0); // wakes the background in any case
        compaction.get();
        REQUIRE(ended == std::future_status::ready);
        REQUIRE((code == 0 || code == ENOSPC));
        full_disks = 0;
        REQUIRE(soon([&] { // it tries again after a second
            try {
                store->compact();
                return true;
            } catch (const lsm::Error &) {
                return false;
            }
        }));
    }
    compare(*store, model);
}

TEST_CASE("only key_lsm works with a budget of 0")
{
    test::Directory directory;
    lsm::Options options = tiny(Memtables::mutable_persistent);
    options.persistent_bytes = 0;
    REQUIRE_THROWS_AS(lsm::Store::open(directory.path(), options), lsm::Error);
    auto store = lsm::Store::open(directory.path(), tiny(Memtables::merging));
    REQUIRE_THROWS_AS(store->set_persistent_bytes((256 << 10) - 1), lsm::Error);
    store->set_persistent_bytes(256 << 10);
    store.reset();
    lsm::Store::open(directory.path(), tiny(Memtables::key_lsm));
    options.memtables = Memtables::as_before;
    lsm::Store::open(directory.path(), options);
}

// What a store gives to those who write tables.
struct Ground {
    test::Directory directory;
    const lsm::Options options = keys_apart();
    lsm::Container container{directory / "c.pm", &options};
    lsm::Places places;
    lsm::BlockCache cache{1 << 20};
    lsm::ValueFiles values{directory.path()};
    const lsm::Storage storage{places, &container, cache, values};
    uint64_t numbers_used = 0;
    const lsm::Works works{storage, options, [&] { return ++numbers_used; }, [] { return false; }};

    Ground() { places.directory = directory.path(); }

    lsm::TableInfo table(lsm::TablePlace place, const std::string &key)
    {
        lsm::TableBuilder builder(storage, works.new_number(), place, options);
        builder.add(lsm::tagged(key, 1, lsm::Kind::value), "value");
        return builder.finish();
    }

    lsm::Version with_table(const lsm::Version &before, unsigned level, const std::string &key)
    {
        lsm::Edit edit;
        edit.added.emplace_back(level, table(lsm::TablePlace::container, key));
        return before.after(edit,
                            {std::make_shared<lsm::Table>(storage, edit.added.front().second)});
    }
};

TEST_CASE_METHOD(Ground, "new tables that nobody takes are deleted")
{
    const bool taken = GENERATE(false, true);
    {
        lsm::NewTables made(storage);
        made.add(table(lsm::TablePlace::directory, "a"));
        made.add(table(lsm::TablePlace::container, "b"));
        if (taken)
            REQUIRE(made.take().size() == 2);
    }
    while (container.free_some())
        ;
    REQUIRE(files(directory.path(), ".table").size() == taken);
    REQUIRE(container.tables().size() == taken);
}

TEST_CASE_METHOD(
    Ground,
    "a table of level 0 stays, for its number says how new it is; others go where they should be")
{
    bool may_come = true;
    const lsm::Version young = with_table({}, 0, "a");
    REQUIRE(lsm::must_leave_level0(young, 0));
    REQUIRE_FALSE(lsm::move_table(young, 0, may_come, works));

    const lsm::Version all = with_table(with_table(young, 1, "b"), 2, "c");
    const uint64_t each = young.bytes(0);
    REQUIRE(lsm::levels_in_container(all, 0) == 0);
    REQUIRE(lsm::levels_in_container(all, each) == 0);
    REQUIRE(lsm::levels_in_container(all, each + 1) == 1);
    REQUIRE(lsm::levels_in_container(all, 3 * each) == 2);
    REQUIRE(lsm::levels_in_container(all, 3 * each + 1) == lsm::levels);
    REQUIRE_FALSE(lsm::must_leave_level0(all, each + 1));
    const auto edit = lsm::move_table(all, 2 * each + 1, may_come, works);
    REQUIRE(edit);
    REQUIRE(edit->removed == std::vector<uint64_t>{3});
    REQUIRE(edit->added.front().first == 2);
    REQUIRE(edit->added.front().second.place == lsm::TablePlace::directory);
    REQUIRE(files(directory.path(), ".table").size() == 1);

    const lsm::Version moved =
        all.after(*edit, {std::make_shared<lsm::Table>(storage, edit->added.front().second)});
    REQUIRE_FALSE(lsm::move_table(moved, 2 * each + 1, may_come, works));
    may_come = false;
    REQUIRE_FALSE(lsm::move_table(moved, 100 * each, may_come, works));
    may_come = true;
    REQUIRE(
        lsm::move_table(moved, 100 * each, may_come, works)->added.front().second.in_container());
}

TEST_CASE("a file of values that is missing, cut or damaged fails the reads of its values only")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    options.garbage_share = 1;
    Model model;
    {
        auto store = lsm::Store::open(directory.path(), options);
        model = filled(*store, 3000);
        for (auto at = model.begin(); at != model.end(); ++at) // so that all files have garbage
            if (at->first.back() == '1')
                store->put(at->first, at->second += "!");
        store->compact();
    }
    const auto all = files(directory.path(), ".values");
    const auto victim = all.at(all.size() / 2);
    const uint64_t bytes = std::filesystem::file_size(victim);
    std::string message = victim.string() + ": cannot open";
    bool is_short = true; // of what is needed, so it has no garbage
    SECTION("missing")
    {
        std::filesystem::remove(victim);
    }
    SECTION("cut")
    {
        std::filesystem::resize_file(victim, bytes / 2);
        message = victim.string() + ": offset " + std::to_string(bytes / 2) + ": the file ends";
    }
    SECTION("damaged")
    {
        std::fstream(victim, std::ios::in | std::ios::out | std::ios::binary)
            << std::string(bytes / 2, 'd');
        message = ": a value is damaged";
        is_short = false;
    }
    auto store = lsm::Store::open(directory.path(), options);
    uint64_t failed = 0;
    for (const auto &[key, value] : model)
        try {
            const auto found = store->get(key);
            REQUIRE(found == value);
        } catch (const lsm::Error &error) {
            REQUIRE(std::string(error.what()).find(victim) != std::string::npos);
            REQUIRE(std::string(error.what()).find(message) != std::string::npos);
            REQUIRE(std::string(error.what()).find("offset ") != std::string::npos);
            failed++;
        }
    REQUIRE(failed > 10);
    REQUIRE(failed < model.size() / 3);
    auto walk = store->iterator();
    for (auto at = std::next(model.begin()); at != model.end(); ++at) {
        walk->seek(at->first);
        bool is_read = true;
        try {
            walk->prev();
        } catch (const lsm::Error &) {
            is_read = false;
            failed--;
        }
        REQUIRE(walk->valid() == is_read);
        REQUIRE((!is_read || walk->value() == std::prev(at)->second));
    }
    REQUIRE(failed <= 1); // the last key
    walk.reset();
    REQUIRE_THROWS_WITH(store->check(), Catch::Contains(message));
    if (is_short)
        store->collect();
    else
        REQUIRE_THROWS_WITH(store->collect(), Catch::Contains(victim.string()));
    const auto space = numbers(*store, "values"); // all others have been collected
    REQUIRE(space[1] - space[2] <= bytes);
    store->put("after", "it"); // the store goes on
    store->compact();
    REQUIRE(store->get("after") == "it");

    // Whoever deletes or overwrites those keys is rid of it.
    for (const auto &[key, value] : model)
        store->put(key, value);
    store->compact();
    store->collect();
    store->check();
    for (const auto &[key, value] : model)
        REQUIRE(store->get(key) == value);
}

TEST_CASE("a value in the place of another is damaged")
{
    test::Directory directory;
    auto store = lsm::Store::open(directory.path(), keys_apart());
    for (const char *key : {"a", "b"})
        store->put(key, std::string(100, *key));
    store->compact();
    const auto file = files(directory.path(), ".values").at(0);
    std::fstream values(file, std::ios::in | std::ios::out | std::ios::binary);
    std::string text(std::filesystem::file_size(file), 0);
    values.read(text.data(), static_cast<std::streamsize>(text.size()));
    const size_t half = text.size() / 2;
    REQUIRE(half == lsm::Address{0, 0, 100}.space());
    values.seekp(0);
    values << text.substr(half) << text.substr(0, half) << std::flush;
    for (const char *key : {"a", "b"})
        REQUIRE_THROWS_WITH(store->get(key), Catch::Contains("a value is damaged"));
}

TEST_CASE("if a commit fails and may have been made, what it names is kept")
{
    const lsm::Options options = keys_apart();
    bool failed = true;
    for (int64_t commit = 0; failed; commit++) {
        CAPTURE(commit);
        test::Directory directory;
        auto store = lsm::Store::open(directory.path(), options);
        Model model = filled(*store, 500);
        store->compact();
        churn(*store, model, 1, 200);
        commits_left = commit;
        failed = false;
        try {
            store->compact();
            store->collect();
            store->set_persistent_bytes(0);
            const bool moved = soon([&] {
                store->compact(); // fails if the store does
                return numbers(*store, "container").front() == 0;
            });
            REQUIRE(moved);
        } catch (const lsm::Error &error) {
            REQUIRE(error.code().value() == EIO);
            failed = true;
        }
        store.reset();
        commits_left = INT64_MAX;
        store = lsm::Store::open(directory.path(), options);
        compare(*store, model);
        store->check();
    }
}

TEST_CASE("what nobody has the address of is deleted by the next opening")
{
    test::Directory directory;
    const lsm::Options options = keys_apart();
    Model model;
    {
        auto store = lsm::Store::open(directory.path(), options);
        model = filled(*store, 2000);
        store->compact();
    }
    const std::string values = lsm::value_path(directory.path(), 900001);
    std::ofstream(values) << "of a flush that a crash ended";
    {
        lsm::Container container(directory / "memtables.pm", nullptr);
        container.add_table(900000, "of a merge that a crash ended");
    }
    auto store = lsm::Store::open(directory.path(), options);
    REQUIRE_FALSE(std::filesystem::exists(values));
    compare(*store, model);
    churn(*store, model, 5, 100);
    store->compact();
    REQUIRE(files(directory.path(), ".values").back() > values); // its number is not used again
    REQUIRE(soon([&] { return store->property("container"); }));
    store.reset();
    lsm::Container container(directory / "memtables.pm", nullptr);
    const auto tables = container.tables();
    REQUIRE(std::find(tables.begin(), tables.end(), 900000) == tables.end());
}

TEST_CASE("a container of before opens, and takes tables and edits")
{
    test::Directory directory;
    const std::string path = directory / "c";
    {
        pm::options options;
        options.flags = PM_CREATE | PM_ANNOUNCED;
        options.tracker = PM_TRACKER_STORES;
        options.engine = test::engine_option();
        options.layout = "lsm/1";
        pm::container old(path, options);
        struct Root {
            uint64_t id;
            bool claimed;
            void *newest;
        };
        auto *root = static_cast<Root *>(pm_malloc(old.get(), sizeof(Root)));
        REQUIRE(pm_dirty(root, sizeof *root) == 0);
        *root = {4711, true, nullptr};
        old.set_root(root);
        old.commit();
    }
    for (int opening = 0; opening < 2; opening++) {
        lsm::Container container(path, nullptr);
        REQUIRE(container.id() == 4711);
        if (opening == 0) {
            container.add_table(7, "table");
            container.begin_edits("one");
            container.append_edit("two");
        }
        REQUIRE(container.table(7) == "table");
        REQUIRE(container.edits() == std::vector<std::string_view>{"one", "two"});
        REQUIRE_THROWS_WITH(container.table(8), Catch::Contains("lacks table 8"));
        container.check();
    }
}

TEST_CASE("without PLACES or with a container that lacks a table the store says so")
{
    test::Directory directory;
    lsm::Options options = keys_apart();
    {
        auto store = lsm::Store::open(directory.path(), options);
        filled(*store, 2000);
        store->compact();
    }
    SECTION("without PLACES")
    {
        std::filesystem::remove(directory / "PLACES");
        REQUIRE_THROWS_WITH(lsm::Store::open(directory.path(), options), Catch::Contains("PLACES"));
    }
    SECTION("without a table")
    {
        {
            lsm::Container container(directory / "memtables.pm", nullptr);
            for (const uint64_t number : container.tables())
                container.drop_table(number);
            while (container.free_some())
                ;
        }
        REQUIRE_THROWS_WITH(lsm::Store::open(directory.path(), options),
                            Catch::Contains("lacks table"));
    }
}
