// METRADB through its own interface: against a model, at its limits, with bad input.
#include "common/fixture.hpp"

#include <metradb.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace
{

struct Closer {
    void operator()(metradb *db) const { metradb_close(db); }
};
using Database = std::unique_ptr<metradb, Closer>;

using Model = std::map<std::string, std::string>;

metradb_bytes bytes(const std::string &text)
{
    return metradb_ref(text.data(), text.size());
}

std::string text(metradb_bytes bytes)
{
    return {static_cast<const char *>(bytes.data), bytes.size};
}

std::string key_of(uint64_t number)
{
    return {reinterpret_cast<const char *>(&number), sizeof number};
}

// What the container holds; each key once.
Model contents(const Database &db)
{
    Model found;
    metradb_cursor cursor{};
    metradb_pair pair;
    while (metradb_next(db.get(), &cursor, &pair))
        REQUIRE(found.emplace(text(pair.key), text(pair.value)).second);
    REQUIRE(metradb_count(db.get()) == found.size());
    return found;
}

struct pm_stats stats(const Database &db)
{
    return test::stats(metradb_container(db.get()));
}

// As REQUIRE_OK.
#define REQUIRE_DB(call, expected)                                                                 \
    do {                                                                                           \
        auto result_ = (call);                                                                     \
        INFO(#call << ": " << (result_ < 0 ? metradb_errormsg() : ""));                            \
        REQUIRE(result_ == (expected));                                                            \
    } while (0)

#define REQUIRE_FAILS(call, error, words)                                                          \
    do {                                                                                           \
        errno = 0;                                                                                 \
        REQUIRE((call) == -1);                                                                     \
        REQUIRE(errno == (error));                                                                 \
        REQUIRE_THAT(metradb_errormsg(), Catch::Contains(words));                                  \
    } while (0)

struct Fixture {
    test::Directory directory;
    std::string path = directory / "db.pm";

    Database open(metradb_options o = {}) const
    {
        Database db(metradb_open(path.c_str(), &o));
        INFO(metradb_errormsg());
        REQUIRE(db);
        return db;
    }
    Database create(size_t key_size = 8, uint64_t buckets = 100, uint64_t max_size = 0) const
    {
        metradb_options o{};
        o.flags = METRADB_CREATE | METRADB_EXCLUSIVE;
        o.key_size = key_size;
        o.buckets = buckets;
        o.max_size = max_size;
        o.engine = test::engine_option();
        return open(o);
    }
    void refuses(int error, const char *words, metradb_options o = {}) const
    {
        errno = 0;
        REQUIRE_FALSE(metradb_open(path.c_str(), &o));
        REQUIRE(errno == error);
        REQUIRE_THAT(metradb_errormsg(), Catch::Contains(words));
    }
};

std::function<void()> after_close; // called once, when a container has just been closed

} // namespace

extern "C" int __real_pm_close(pm_container *c);
extern "C" int __wrap_pm_close(pm_container *c)
{
    const int result = __real_pm_close(c);
    if (after_close)
        std::exchange(after_close, nullptr)();
    return result;
}

TEST_CASE_METHOD(Fixture, "does what a map does, with commits, aborts and reopenings")
{
    uint64_t buckets = GENERATE(1, 7, 300);
    Database db = create(8, buckets);
    Model committed, now;
    std::mt19937 random(static_cast<unsigned>(buckets));
    for (int step = 0; step < 4000; step++) {
        std::string key = key_of(random() % 200);
        unsigned what = random() % 100;
        if (what < 50) {
            std::string value(random() % 300, static_cast<char>(random()));
            REQUIRE_DB(metradb_put(db.get(), bytes(key), bytes(value)), !now.count(key));
            now[key] = value;
        } else if (what < 75) {
            REQUIRE_DB(metradb_delete(db.get(), bytes(key)), static_cast<int>(now.erase(key)));
        } else if (what < 92) {
            metradb_bytes value;
            auto found = now.find(key);
            REQUIRE_DB(metradb_get(db.get(), bytes(key), &value), found != now.end());
            if (found != now.end())
                REQUIRE(text(value) == found->second);
        } else if (what < 97) {
            REQUIRE_DB(metradb_commit(db.get()), 0);
            committed = now;
        } else if (what < 98) {
            REQUIRE_DB(metradb_abort(db.get()), 0);
            now = committed;
        } else if (what < 99) { // undoes what was not committed
            db.reset();
            db = open();
            now = committed;
        } else {
            REQUIRE_DB(metradb_check(db.get()), 0);
            REQUIRE(contents(db) == now);
        }
    }
}

TEST_CASE_METHOD(Fixture, "a value lies where it was got until the commit after it was replaced")
{
    Database db = create();
    const std::string key = key_of(1), old(1000, 'o');
    REQUIRE_DB(metradb_put(db.get(), bytes(key), bytes(old)), 1);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    metradb_bytes value;
    REQUIRE(metradb_get(db.get(), bytes(key), &value) == 1);
    REQUIRE(reinterpret_cast<uintptr_t>(value.data) % 8 == 0);
    for (char c : {'a', 'b', 'c'}) // whose buffers may be used again at once
        REQUIRE_DB(metradb_put(db.get(), bytes(key), bytes(std::string(1000, c))), 0);
    REQUIRE_DB(metradb_delete(db.get(), bytes(key)), 1);
    REQUIRE(text(value) == old);
    REQUIRE_DB(metradb_abort(db.get()), 0);
    REQUIRE(text(value) == old);
}

TEST_CASE_METHOD(Fixture, "a put writes its value once, and a commit is one round")
{
    constexpr uint64_t value_size = 4096 - 64; // with its key and links 64 lines
    Database db = create();
    for (uint64_t i = 0; i < 300; i++) { // new ones, and then replacements
        struct pm_stats before = stats(db);
        std::string value(value_size, static_cast<char>(i + 1));
        REQUIRE_DB(metradb_put(db.get(), bytes(key_of(i % 200)), bytes(value)), i < 200);
        REQUIRE(stats(db).rounds == before.rounds);
        REQUIRE_DB(metradb_commit(db.get()), 0);
        struct pm_stats after = stats(db);
        uint64_t fresh = after.bytes_fresh - before.bytes_fresh;
        uint64_t logged = after.bytes_logged - before.bytes_logged - fresh;
        if (test::engine() == "log") { // which logs everything once
            fresh = logged;
            logged = 0;
        }
        REQUIRE(fresh >= value_size);
        REQUIRE(fresh < value_size + (test::engine() == "log" ? 1024 : 128));
        REQUIRE(logged < 768); // three lines of links and of the count, and the allocator's words
        REQUIRE(after.rounds == before.rounds + 1);
        REQUIRE(after.fences == before.fences + 1);
        REQUIRE(after.faults == before.faults);
    }
    struct pm_stats before = stats(db);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    REQUIRE(stats(db).rounds == before.rounds); // nothing was done
    for (uint64_t i = 0; i < 50; i++)
        REQUIRE_DB(metradb_delete(db.get(), bytes(key_of(i))), 1);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    REQUIRE(stats(db).rounds == before.rounds + 1);
    REQUIRE(stats(db).bytes_fresh == before.bytes_fresh);
}

TEST_CASE_METHOD(Fixture, "keys of every length that can be, and of no other")
{
    for (size_t size : {size_t{0}, size_t{METRADB_KEY_MAX} + 1, SIZE_MAX}) {
        metradb_options o{};
        o.flags = METRADB_CREATE;
        o.key_size = size;
        o.buckets = 10;
        refuses(EINVAL, "they can have 1 to 1024", o);
        REQUIRE_FALSE(std::filesystem::exists(path));
    }
    for (size_t size : {1, 7, 8, 9, METRADB_KEY_MAX - 1, METRADB_KEY_MAX}) {
        Database db = create(size);
        std::string key(size, '\0'), other(size, '\0');
        other.back() = '\1';
        REQUIRE_DB(metradb_put(db.get(), bytes(key), bytes("a")), 1);
        REQUIRE_DB(metradb_put(db.get(), bytes(other), bytes("b")), 1);
        for (const std::string &wrong : {std::string(), key.substr(1), key + "x"}) {
            metradb_bytes value;
            REQUIRE_FAILS(metradb_put(db.get(), bytes(wrong), bytes("c")), EINVAL, "all keys have");
            REQUIRE_FAILS(metradb_get(db.get(), bytes(wrong), &value), EINVAL, "all keys have");
            REQUIRE_FAILS(metradb_delete(db.get(), bytes(wrong)), EINVAL, "all keys have");
        }
        REQUIRE_DB(metradb_commit(db.get()), 0);
        db.reset();
        db = open();
        REQUIRE(metradb_key_size(db.get()) == size);
        REQUIRE(contents(db) == Model{{key, "a"}, {other, "b"}});
        REQUIRE_DB(metradb_check(db.get()), 0);
        db.reset();
        REQUIRE_DB(metradb_remove(path.c_str()), 0);
    }
}

TEST_CASE_METHOD(Fixture, "values of every length, from nothing to larger than a segment")
{
    Database db = create();
    Model model;
    uint64_t number = 0;
    for (size_t around : {0, 32, 96, 4096, 512 << 10, 1 << 20, 3 << 20})
        for (size_t size : {around - (around > 0), around, around + 1}) {
            std::string key = key_of(number++), value(size, static_cast<char>(size));
            REQUIRE_DB(metradb_put(db.get(), bytes(key), bytes(value)), 1);
            metradb_bytes found;
            REQUIRE_DB(metradb_get(db.get(), bytes(key), &found), 1);
            REQUIRE(reinterpret_cast<uintptr_t>(found.data) % 8 == 0);
            REQUIRE_DB(metradb_commit(db.get()), 0);
            model[key] = value;
        }
    REQUIRE_DB(metradb_put(db.get(), bytes(key_of(0)), metradb_ref(nullptr, 0)), 0);
    model[key_of(0)] = "";
    // What a get returned may be put again, even under the same key.
    metradb_bytes same;
    REQUIRE_DB(metradb_get(db.get(), bytes(key_of(10)), &same), 1);
    REQUIRE_DB(metradb_put(db.get(), bytes(key_of(10)), same), 0);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    db.reset();
    db = open();
    REQUIRE(contents(db) == model);
    REQUIRE_DB(metradb_check(db.get()), 0);
    for (size_t size : {SIZE_MAX, SIZE_MAX - 31, SIZE_MAX - 32, SIZE_MAX / 2})
        REQUIRE_FAILS(metradb_put(db.get(), bytes(key_of(0)), metradb_ref("", size)), ENOSPC, "");
}

TEST_CASE_METHOD(Fixture,
                 "a full container refuses, keeps what it has, and takes again after deletes")
{
    Database db = create(8, 100, 8 << 20);
    std::string value(1000, 'v');
    Model model;
    uint64_t number = 0;
    for (;; number++) {
        int result = metradb_put(db.get(), bytes(key_of(number)), bytes(value));
        if (result < 0)
            break;
        model[key_of(number)] = value;
        REQUIRE_DB(metradb_commit(db.get()), 0);
    }
    REQUIRE(errno == ENOSPC);
    REQUIRE(number > 1500);
    // A replacement needs a fresh buffer too; and of a batch of which one is too many, none is put.
    REQUIRE_FAILS(metradb_put(db.get(), bytes(key_of(0)), bytes(value + "w")), ENOSPC, "");
    REQUIRE_DB(metradb_delete(db.get(), bytes(key_of(1))), 1);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    model.erase(key_of(1));
    std::vector<std::string> keys = {key_of(number), key_of(number + 1), key_of(number + 2)};
    std::vector<metradb_pair> pairs;
    for (const std::string &key : keys)
        pairs.push_back({bytes(key), bytes(value)});
    REQUIRE_FAILS(metradb_put_many(db.get(), pairs.data(), pairs.size()), ENOSPC, "");
    REQUIRE(contents(db) == model);
    REQUIRE_DB(metradb_check(db.get()), 0);
    REQUIRE_DB(metradb_put(db.get(), bytes(keys[0]), bytes(value)), 1);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    model[keys[0]] = value;
    db.reset();
    REQUIRE(contents(open()) == model);
}

TEST_CASE_METHOD(Fixture, "many at once: all of them or none, the last of a key wins")
{
    uint64_t buckets = GENERATE(1, 50);
    Database db = create(8, buckets);
    std::mt19937 random(5);
    Model model;
    for (int round = 0; round < 50; round++) {
        std::vector<std::string> keys, values;
        for (int i = 0; i < 40; i++) {
            keys.push_back(key_of(random() % 60)); // twice in a batch, often
            values.push_back(std::to_string(random()));
            model[keys.back()] = values.back();
        }
        std::vector<metradb_pair> pairs;
        for (size_t i = 0; i < keys.size(); i++)
            pairs.push_back({bytes(keys[i]), bytes(values[i])});
        REQUIRE_DB(metradb_put_many(db.get(), pairs.data(), pairs.size()), 0);
        struct pm_stats before = stats(db);
        REQUIRE_DB(metradb_commit(db.get()), 0);
        REQUIRE(stats(db).rounds == before.rounds + 1);
        REQUIRE_DB(metradb_check(db.get()), 0);
        REQUIRE(contents(db) == model);
    }
    std::string absent = key_of(1000), wrong = "short", there = model.begin()->first, other = "x";
    metradb_pair pairs[] = {{bytes(there), {}}, {bytes(absent), bytes(other)}, {bytes(there), {}}};
    REQUIRE(metradb_get_many(db.get(), pairs, 3) == 2);
    REQUIRE(text(pairs[0].value) == model.begin()->second);
    REQUIRE(pairs[1].value.data == nullptr);
    REQUIRE(metradb_get_many(db.get(), pairs, 0) == 0);

    pairs[1].key = bytes(wrong);
    REQUIRE_FAILS(metradb_get_many(db.get(), pairs, 3), EINVAL, "all keys have");
    REQUIRE(text(pairs[2].value) == model.begin()->second);
    pairs[0].value = bytes(other); // not to be put
    REQUIRE_FAILS(metradb_put_many(db.get(), pairs, 3), EINVAL, "all keys have");
    REQUIRE(contents(db) == model);
    REQUIRE_DB(metradb_check(db.get()), 0);
    REQUIRE_DB(metradb_put_many(db.get(), nullptr, 0), 0);
}

TEST_CASE_METHOD(Fixture, "an enumeration meets each pair once, and may delete as it goes")
{
    Database db = create(8, 20);
    for (uint64_t i = 0; i < 100; i++)
        REQUIRE_DB(metradb_put(db.get(), bytes(key_of(i)), bytes("v")), 1);
    metradb_cursor cursor{};
    metradb_pair pair;
    int seen = 0;
    while (metradb_next(db.get(), &cursor, &pair)) {
        if (seen++ % 2 == 0)
            REQUIRE_DB(metradb_delete(db.get(), pair.key), 1);
    }
    REQUIRE(seen == 100);
    REQUIRE(metradb_next(db.get(), &cursor, &pair) == 0);
    REQUIRE(contents(db).size() == 50);
    REQUIRE_DB(metradb_check(db.get()), 0);
}

TEST_CASE_METHOD(Fixture, "one handle that writes, or several that read")
{
    refuses(ENOENT, "No such file");
    Database db = create();
    REQUIRE_DB(metradb_put(db.get(), bytes(key_of(1)), bytes("one")), 1);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    metradb_options reading{}, exclusive{};
    reading.flags = METRADB_READONLY;
    refuses(EBUSY, "open");
    refuses(EBUSY, "open", reading);
    REQUIRE_FAILS(metradb_remove(path.c_str()), EBUSY, "open");
    db.reset();

    Database one = open(reading), other = open(reading);
    refuses(EBUSY, "open");
    REQUIRE(contents(one) == contents(other));
    REQUIRE_FAILS(metradb_put(one.get(), bytes(key_of(2)), bytes("two")), EROFS, "READONLY");
    REQUIRE_FAILS(metradb_delete(one.get(), bytes(key_of(1))), EROFS, "READONLY");
    one.reset();
    other.reset();

    exclusive.flags = METRADB_CREATE | METRADB_EXCLUSIVE;
    exclusive.key_size = 8;
    exclusive.buckets = 1;
    refuses(EEXIST, "is there already", exclusive);
    REQUIRE_DB(metradb_remove(path.c_str()), 0);
    REQUIRE_FALSE(std::filesystem::exists(path));
    REQUIRE_FAILS(metradb_remove(path.c_str()), ENOENT, "");

    pm_options another = test::options(PM_CREATE); // another program's data
    another.layout = "another/1";
    test::open(path, another).reset();
    REQUIRE_FAILS(metradb_remove(path.c_str()), EMEDIUMTYPE, "another/1");
    REQUIRE(std::filesystem::exists(path));
}

TEST_CASE_METHOD(Fixture, "opens what it has created, and nothing else")
{
    metradb_options o{};
    o.flags = METRADB_CREATE;
    o.key_size = 8;
    refuses(EINVAL, "at least 1 bucket", o);
    for (unsigned flags : {8u, 1u << 31 | METRADB_CREATE, METRADB_CREATE | METRADB_READONLY | 0u,
                           METRADB_EXCLUSIVE | 0u}) {
        metradb_options odd = o;
        odd.buckets = 10;
        odd.flags = flags;
        refuses(EINVAL, flags & ~7u ? "unknown" : "METRADB_CREATE", odd);
    }
    o.buckets = UINT64_MAX / 8;
    refuses(ENOSPC, "", o);
    REQUIRE_FALSE(std::filesystem::exists(path)); // nothing is left of it

    o.buckets = 10;
    REQUIRE_DB(metradb_close(open(o).release()), 0);
    o.buckets = 20; // it is there: opened as it is
    REQUIRE(metradb_buckets(open(o).get()) == 10);
    o.key_size = 9;
    refuses(EINVAL, "keys of 9 bytes are wanted; here they have 8", o);
    REQUIRE_DB(metradb_remove(path.c_str()), 0);

    test::write_file(path, std::string(100000, 'x'));
    refuses(EBADMSG, "");
    std::filesystem::remove(path);

    pm_options foreign = test::small();
    foreign.layout = "another/1";
    test::open(path, foreign).reset();
    refuses(EMEDIUMTYPE, "another/1");
    refuses(EMEDIUMTYPE, "another/1", o); // nor takes over what is still empty
    REQUIRE(pm_delete(path.c_str()) == 0);

    foreign.layout = "metradb/1"; // as a crash in the middle of the creation leaves it
    foreign.flags |= PM_MOVABLE;
    test::open(path, foreign).reset();
    refuses(ENODATA, "create it once more");
    REQUIRE(contents(create()).empty());
}

TEST_CASE_METHOD(Fixture,
                 "a creation that fails does not delete what another creation has made meanwhile")
{
    metradb_options too_many{};
    too_many.flags = METRADB_CREATE;
    too_many.key_size = 8;
    too_many.buckets = UINT64_MAX / 8;
    too_many.engine = test::engine_option();
    const bool stays_open = GENERATE(false, true);
    Database other;
    after_close = [&] {
        other = create();
        REQUIRE_DB(metradb_put(other.get(), bytes(key_of(1)), bytes("one")), 1);
        REQUIRE_DB(metradb_commit(other.get()), 0);
        if (!stays_open)
            other.reset();
    };
    refuses(ENOSPC, "", too_many);
    other.reset();
    REQUIRE(contents(open()) == Model{{key_of(1), "one"}});
}

TEST_CASE_METHOD(Fixture, "a copy opens beside its original")
{
    Database db = create();
    for (uint64_t i = 0; i < 300; i++)
        REQUIRE_DB(metradb_put(db.get(), bytes(key_of(i)), bytes(std::to_string(i))), 1);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    Model model = contents(db);
    db.reset();
    std::string original = path;
    path = directory / "copy.pm";
    std::filesystem::copy_file(original, path);
    Database copy = open();
    path = original;
    db = open();
    REQUIRE(stats(db).pointers_moved > 600); // which was the later one
    for (Database *each : {&copy, &db}) {
        REQUIRE_DB(metradb_check(each->get()), 0);
        REQUIRE(contents(*each) == model);
        REQUIRE_DB(metradb_delete(each->get(), bytes(key_of(7))), 1);
        REQUIRE_DB(metradb_commit(each->get()), 0);
    }
    copy.reset();
    path = directory / "copy.pm";
    std::filesystem::copy_file(path, directory / "third.pm");
    copy = open();
    metradb_options reading{};
    reading.flags = METRADB_READONLY;
    path = directory / "third.pm";
    model.erase(key_of(7));
    REQUIRE(contents(open(reading)) == model);
}

TEST_CASE_METHOD(Fixture, "copies are whole at twenty addresses at once")
{
    Database db = create();
    for (uint64_t i = 0; i < 300; i++)
        REQUIRE_DB(metradb_put(db.get(), bytes(key_of(i)), bytes(std::to_string(i))), 1);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    const Model model = contents(db);
    db.reset();
    const std::string original = path;
    std::vector<Database> all;
    for (int i = 0; i < 20; i++) {
        path = directory / std::to_string(i);
        std::filesystem::copy_file(original, path);
        all.push_back(open());
        for (const Database &other : all)
            REQUIRE((&other == &all.back() || stats(other).base != stats(all.back()).base));
        REQUIRE_DB(metradb_check(all.back().get()), 0);
        REQUIRE(contents(all.back()) == model);
    }
}

TEST_CASE_METHOD(Fixture, "a thread for each container, side by side")
{
    constexpr int threads = 4;
    std::atomic<int> failures = 0;
    std::vector<Database> all;
    std::vector<std::thread> working;
    for (int i = 0; i < threads; i++) {
        path = directory / std::to_string(i);
        all.push_back(create());
    }
    for (Database &db : all)
        working.emplace_back([&failures, &db] {
            for (uint64_t i = 0; i < 500; i++) {
                failures += metradb_put(db.get(), bytes(key_of(i % 100)), bytes("value")) < 0;
                failures += metradb_commit(db.get()) != 0;
            }
            failures += metradb_check(db.get()) != 0;
        });
    for (std::thread &thread : working)
        thread.join();
    REQUIRE(failures == 0);
    for (const Database &db : all)
        REQUIRE(metradb_count(db.get()) == 100);
}

TEST_CASE_METHOD(Fixture, "the check tells a damaged table from a whole one")
{
    Database db = create(8, 3);
    for (uint64_t i = 0; i < 10; i++)
        REQUIRE_DB(metradb_put(db.get(), bytes(key_of(i)), bytes("v")), 1);
    REQUIRE_DB(metradb_commit(db.get()), 0);
    metradb_cursor cursor{};
    metradb_pair first, second; // of one chain
    REQUIRE(metradb_next(db.get(), &cursor, &first) == 1);
    REQUIRE(metradb_next(db.get(), &cursor, &second) == 1);

    auto damage = [&](const void *at, const void *bytes, size_t size, const char *words) {
        REQUIRE(pm_dirty(at, size) == 0);
        memcpy(const_cast<void *>(at), bytes, size);
        REQUIRE_FAILS(metradb_check(db.get()), EBADMSG, words);
        REQUIRE_DB(metradb_abort(db.get()), 0);
        REQUIRE_DB(metradb_check(db.get()), 0);
    };
    const char *pair = static_cast<const char *>(second.key.data) - 24; // next, back, value_size
    const uint64_t wrong = 1000;
    damage(second.key.data, first.key.data, 8, "a key is there twice");
    damage(pair + 16, &wrong, 8, "a link leads to no pair");
    damage(pair + 8, pair, 8, "a pair does not know the link");
    void *lost = pm_malloc(metradb_container(db.get()), 100);
    REQUIRE(lost);
    REQUIRE_FAILS(metradb_check(db.get()), EBADMSG, "memory is lost");
}
