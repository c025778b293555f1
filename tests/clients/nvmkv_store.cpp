// NVMKV's pairs: their bounds, their places, and what is counted.
#include "nvmkv/nvmkv.hpp"
#include "nvmkv/places.hpp"

#include "clients/nvmkv.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>

using nvmkv::KeyValue, nvmkv::Options, nvmkv::Store;
using test::error_of, test::small_store;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "store.kv";
};

} // namespace

TEST_CASE_METHOD(Fixture, "keys and values as long as they may be, and one byte more")
{
    Store store = Store::create(path, small_store());
    for (size_t size : {1, 127, 128}) {
        const std::string key(size, 'k');
        store.put(key, "v" + std::to_string(size));
        REQUIRE(store.get(key) == "v" + std::to_string(size));
    }
    for (size_t size : {0, 129, 100000}) {
        const std::string key(size, 'k');
        REQUIRE(error_of([&] { store.put(key, "v"); }) == EINVAL);
        REQUIRE(error_of([&] { store.get(key); }) == EINVAL);
        REQUIRE(error_of([&] { store.erase(key); }) == EINVAL);
        REQUIRE(error_of([&] { store.exists(key); }) == EINVAL);
    }
    // In one sector up to 512 - 32 - 3; then from the second on; up to half of the region.
    const size_t most = store.info().value_max;
    REQUIRE(most == 1 << 20);
    for (size_t size : {size_t{0}, size_t{1}, size_t{476}, size_t{477}, size_t{478}, size_t{512},
                        size_t{513}, most - 1, most}) {
        std::string value(size, 'v');
        for (size_t i = 0; i < size; i++)
            value[i] = static_cast<char>(i * 7 >> 4);
        store.put("key", value);
        REQUIRE(store.get("key") == value);
        store.check();
    }
    REQUIRE(error_of([&] { store.put("key", std::string(most + 1, 'v')); }) == EFBIG);
    REQUIRE(store.get("key")->size() == most);
    REQUIRE(store.erase("key"));
    REQUIRE_FALSE(store.erase("key"));
    REQUIRE_FALSE(store.get("key"));
    std::string zeros("\0a\0", 3);
    store.put(zeros, zeros + "b");
    REQUIRE(store.get(zeros) == zeros + "b");
    store.check();
}

TEST_CASE_METHOD(Fixture, "a get is one read, a put one write")
{
    Store store = Store::create(path, small_store());
    for (int i = 0; i < 100; i++)
        store.put("key" + std::to_string(i), std::string(1024, 'v'));
    const nvmkv::Counters before = store.info().io;
    REQUIRE(before.writes == 101); // with the first sector
    for (int i = 0; i < 100; i++)
        REQUIRE(store.get("key" + std::to_string(i)));
    const nvmkv::Counters after = store.info().io;
    REQUIRE(after.reads - before.reads == 100);
    REQUIRE(after.bytes_read - before.bytes_read == 100 * 1536);
    REQUIRE(after.bytes_written == before.bytes_written);
    REQUIRE_FALSE(store.get("none"));
    REQUIRE(store.info().io.reads == after.reads);
}

TEST_CASE_METHOD(Fixture, "the bits of a store")
{
    for (auto [key_bits, value_bits] : {std::pair{4u, 12u}, {36, 1}, {36, 21}, {37, 12}, {100, 2}})
        REQUIRE(error_of([&] { Store::create(path, small_store(key_bits, value_bits)); }) ==
                EINVAL);
    REQUIRE_FALSE(std::filesystem::exists(path));
    for (auto [key_bits, value_bits] : {std::pair{5u, 2u}, {46, 2}, {28, 20}}) {
        {
            Store store = Store::create(path, small_store(key_bits, value_bits));
            const size_t most = store.info().value_max;
            REQUIRE(most == (256u << value_bits));
            if (value_bits == 2)
                store.put("key", std::string(most, 'v'));
            store.put("another", "value");
        }
        REQUIRE(error_of([&] { Store::create(path, small_store()); }) == EEXIST);
        Options other = small_store(20, 10);
        other.readonly = true;
        Store store = Store::open(path, other);
        REQUIRE(store.info().key_bits == key_bits); // as it was created
        REQUIRE(store.info().value_bits == value_bits);
        REQUIRE(store.get("another") == "value");
        REQUIRE(error_of([&] { store.put("key", "v"); }) == EROFS);
        store.check();
        std::filesystem::remove(path);
    }
}

TEST_CASE_METHOD(Fixture, "who may open it, and destroy it")
{
    REQUIRE(error_of([&] { Store::open(path); }) == ENOENT);
    REQUIRE(error_of([&] { Store::destroy(path); }) == ENOENT);
    {
        Store store = Store::create(path, small_store());
        REQUIRE(error_of([&] { Store::open(path); }) == EBUSY);
        REQUIRE(error_of([&] { Store::destroy(path); }) == EBUSY);
        store.put("key", "value");
    }
    const std::string other = directory / "other.pm";
    nvmkv::Ftl(other, {.flags = PM_CREATE}).write(7, test::sectors('x', 1));
    REQUIRE(error_of([&] { Store::open(other); }) == EBADMSG);
    REQUIRE(error_of([&] { Store::create(other); }) == EBADMSG); // not taken over
    nvmkv::Ftl(other, {}).write(0, test::sectors('x', 1));
    REQUIRE(error_of([&] { Store::open(other); }) == EBADMSG);
    REQUIRE(error_of([&] { Store::destroy(other); }) == EBADMSG);
    REQUIRE(std::filesystem::exists(other));
    REQUIRE(Store::open(path).get("key") == "value");
    Store::destroy(path);
    REQUIRE_FALSE(std::filesystem::exists(path));
    pm::container(path, {.flags = PM_CREATE, .layout = "another/1"});
    for (auto call : {+[](const std::string &p) { Store::open(p); },
                      +[](const std::string &p) { Store::open(p, {.create_if_missing = true}); },
                      +[](const std::string &p) { Store::create(p); }, +Store::destroy})
        REQUIRE(error_of([&] { call(path); }) == EMEDIUMTYPE);
    REQUIRE(pm::container(path, {.layout = "another/1"}).root<void>() == nullptr);
}

TEST_CASE_METHOD(Fixture, "a store whose creation was cut short counts as none")
{
    // After each of the commits by which a store is created but the last.
    const auto cut = GENERATE(
        +[](const std::string &p) {
            pm::options options{.flags = PM_CREATE | PM_MOVABLE, .layout = "nvmkv/1"};
            options.engine = test::engine_option();
            pm::container(p, options);
        },
        +[](const std::string &p) {
            nvmkv::Ftl(p, {.flags = PM_CREATE, .engine = test::engine_option()});
        });
    cut(path);
    REQUIRE(error_of([&] { Store::open(path); }) == ENODATA);
    REQUIRE(error_of([&] { Store::open(path, {.readonly = true}); }) == ENODATA);
    Store::create(path, small_store()).put("key", "value");
    REQUIRE(error_of([&] { Store::create(path); }) == EEXIST);
    REQUIRE(Store::open(path, {.create_if_missing = true}).get("key") == "value");
    Store::destroy(path);

    cut(path);
    Options options = small_store(4);
    options.create_if_missing = true;
    REQUIRE(error_of([&] { Store::open(path, options); }) == EINVAL);
    options.key_bits = 20;
    REQUIRE(Store::open(path, options).info().key_bits == 20);
    Store::destroy(path);

    cut(path);
    Store::destroy(path);
    REQUIRE_FALSE(std::filesystem::exists(path));
    Store::open(path, options).check();
}

TEST_CASE_METHOD(Fixture, "copies are whole at twenty addresses at once")
{
    {
        Store store = Store::create(path, small_store());
        for (int i = 0; i < 300; i++)
            store.put("key" + std::to_string(i), std::string(static_cast<size_t>(i), 'v'));
    }
    std::vector<Store> all;
    for (int copy = 0; copy < 20; copy++) {
        const std::string other = path + std::to_string(copy);
        std::filesystem::copy_file(path, other);
        all.push_back(Store::open(other));
        all.back().check();
        for (int i = 0; i < 300; i++)
            REQUIRE(all.back().get("key" + std::to_string(i)) ==
                    std::string(static_cast<size_t>(i), 'v'));
    }
}

TEST_CASE_METHOD(Fixture, "a key whose places are all taken is refused, and overwrites nothing")
{
    Store store = Store::create(path, small_store(5, 3));
    std::map<std::string, std::string> model;
    size_t refused = 0;
    for (int i = 0; i < 200; i++) {
        const std::string key = "key" + std::to_string(i);
        const int error = error_of([&] { store.put(key, std::to_string(i)); });
        if (error == 0)
            model[key] = std::to_string(i);
        else
            refused += error == EOVERFLOW;
    }
    REQUIRE(model.size() + refused == 200);
    REQUIRE(model.size() == 31); // all regions but the first
    store.check();
    for (const auto &[key, value] : model)
        REQUIRE(store.get(key) == value);
    for (const auto &[key, value] : model)
        REQUIRE(store.erase(key));
    REQUIRE_FALSE(store.begin().next());
    store.put("another", "value");
    store.erase_all(); // the tombstones too
    REQUIRE(store.ftl().extents() == 1);
    store.check();
}

TEST_CASE_METHOD(Fixture, "what is no pair is told, with the file and the sector")
{
    Store store = Store::create(path, small_store());
    store.put("key", "value");
    const uint64_t sector = store.ftl().iterate(1)->first;
    auto walk = store.begin();
    REQUIRE(walk.next());
    store.ftl().write(sector, test::sectors('x', 1));
    for (auto call : {std::function<void()>([&] { store.get("key"); }),
                      {[&] { store.put("key", ""); }},
                      {[&] { store.erase("key"); }},
                      {[&] { walk.get_current(); }}})
        try {
            call();
            FAIL("taken for a pair");
        } catch (const std::system_error &error) {
            REQUIRE(error.code().value() == EBADMSG);
            REQUIRE_THAT(error.what(),
                         Catch::Contains(path + ": sector " + std::to_string(sector)));
        }
    REQUIRE_THROWS_AS(store.check(), std::runtime_error);
}

TEST_CASE_METHOD(Fixture, "where keys collide all the time, a store is still a map")
{
    const unsigned seed = GENERATE(1u, 2u);
    std::mt19937 random(seed);
    INFO("seed " << seed);
    Options options = small_store(6, 3); // 63 regions
    options.cache_bytes = seed == 1 ? 0 : 64 << 10;
    options.collision_cache = seed == 1;
    std::optional<Store> store = Store::create(path, options);
    std::map<std::string, std::string> model;
    for (int i = 0; i < 1500; i++) {
        const std::string key = "k" + std::to_string(random() % 70);
        const std::string value(random() % 1500, static_cast<char>('a' + random() % 26));
        if (random() % 3 == 0)
            REQUIRE(store->erase(key) == (model.erase(key) == 1));
        else if (error_of([&] { store->put(key, value); }) == 0)
            model[key] = value;
        if (i % 50 == 0) {
            store->check();
            for (int k = 0; k < 70; k++) {
                const auto found = store->get("k" + std::to_string(k));
                const auto expected = model.find("k" + std::to_string(k));
                REQUIRE(found.has_value() == (expected != model.end()));
                REQUIRE((!found || *found == expected->second));
            }
            std::map<std::string, std::string> walked;
            for (auto it = store->begin(); it.next();)
                walked[it.get_current()->key] = it.get_current()->value;
            REQUIRE(walked == model);
        }
        if (i % 500 == 499) {
            store.reset();
            store = Store::open(path, options);
        }
    }
    REQUIRE(model.size() > 20);
}

TEST_CASE_METHOD(Fixture, "the collision cache saves reads")
{
    auto reads_of_all = [&](bool collision_cache) {
        Options options = small_store(5, 3);
        options.collision_cache = collision_cache;
        Store store = Store::open(path, options);
        uint64_t before = 0;
        for (int turn = 0; turn < 2; turn++) { // the second one counts
            before = store.info().io.reads;
            for (int i = 0; i < 24; i++)
                REQUIRE(store.get("key" + std::to_string(i)) == "value");
        }
        return store.info().io.reads - before;
    };
    {
        Store store = Store::create(path, small_store(5, 3));
        for (int i = 0; i < 24; i++)
            store.put("key" + std::to_string(i), "value");
    }
    const uint64_t without = reads_of_all(false), with = reads_of_all(true);
    REQUIRE(with == 24);
    REQUIRE(without > 30);
}

TEST_CASE_METHOD(Fixture, "the read cache saves reads, is bounded, and never lies")
{
    Options options = small_store();
    options.cache_bytes = 256 << 10;
    Store store = Store::create(path, options);
    auto key = [](int i) { return "key" + std::to_string(i); };
    for (int i = 0; i < 1000; i++)
        store.put(key(i), std::string(1000, 'v'));
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < 50; i++)
            REQUIRE(store.get(key(i)));
    REQUIRE(store.info().cache_hits >= 90);
    for (int i = 0; i < 1000; i++)
        REQUIRE(store.get(key(i)));
    const uint64_t hits = store.info().cache_hits;
    for (int i = 0; i < 1000; i++) // there was not room for all
        REQUIRE(store.get(key(i)));
    REQUIRE(store.info().cache_hits - hits < 500);

    REQUIRE(store.get("key7"));
    store.put("key7", "new");
    REQUIRE(store.get("key7") == "new");
    REQUIRE(store.get("key7") == "new");
    REQUIRE(store.erase("key7"));
    REQUIRE_FALSE(store.get("key7"));
    const std::string_view keys[] = {"key8", "none", "key9"};
    REQUIRE(store.get("key8"));
    REQUIRE(store.erase_batch(keys, nvmkv::default_pool, Store::Atomic::whole) == 2);
    REQUIRE_FALSE(store.get("key8"));
    REQUIRE(store.get("key10"));
    store.erase_all();
    REQUIRE_FALSE(store.get("key10"));
}

TEST_CASE_METHOD(Fixture, "batches")
{
    Store store = Store::create(path, small_store(36, 4)); // values of up to 4096 bytes
    const Store::Atomic atomic = GENERATE(Store::Atomic::each, Store::Atomic::whole);
    const KeyValue pairs[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
    store.put_batch(pairs, 0, atomic);
    const std::string_view keys[] = {"b", "a", "none"};
    REQUIRE(store.get_batch(keys) ==
            std::vector<std::optional<std::string>>{"2", "3", std::nullopt});

    const std::string large(4097, 'x');
    const KeyValue bad[] = {{"c", "1"}, {"a", large}, {"d", "2"}};
    REQUIRE(error_of([&] { store.put_batch(bad, 0, atomic); }) == EFBIG);
    REQUIRE(store.get("a") == "3");
    REQUIRE(store.exists("c") == (atomic == Store::Atomic::each)); // it came before
    REQUIRE_FALSE(store.exists("d"));

    REQUIRE(store.erase_batch(keys, 0, atomic) == 2);
    REQUIRE(store.erase_batch(keys, 0, atomic) == 0);
    store.put_batch({}, 0, atomic);
    REQUIRE(store.erase_batch({}, 0, atomic) == 0);
    REQUIRE(error_of([&] { store.put_batch(pairs, 1, atomic); }) == ENOENT);
    store.check();
}

TEST_CASE_METHOD(Fixture, "a batch as a whole is as large as is said, and no larger")
{
    constexpr size_t replaced_max = 8192, erased_max = 1260;
    Store store = Store::create(path, small_store());
    std::vector<std::string> keys;
    for (size_t i = 0; i <= replaced_max; i++)
        keys.push_back("key" + std::to_string(i));
    std::vector<KeyValue> pairs;
    for (const std::string &key : keys)
        pairs.push_back({key, "new"});
    auto put = [&](size_t count) {
        store.put_batch(std::span(pairs).first(count), 0, Store::Atomic::whole);
    };
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    auto erase = [&](size_t count) {
        store.erase_batch(std::span(views).first(count), 0, Store::Atomic::whole);
    };
    put(pairs.size()); // all are new
    for (KeyValue &pair : pairs)
        pair.value = "replaced";
    REQUIRE(error_of([&] { put(replaced_max + 1); }) == E2BIG);
    REQUIRE(store.get(keys[0]) == "new");
    put(replaced_max);
    REQUIRE(store.get(keys[replaced_max - 1]) == "replaced");
    REQUIRE(store.get(keys[replaced_max]) == "new");
    REQUIRE(error_of([&] { erase(erased_max + 1); }) == E2BIG);
    REQUIRE(store.exists(keys[0]));
    erase(erased_max);
    REQUIRE_FALSE(store.exists(keys[erased_max - 1]));
    REQUIRE(store.exists(keys[erased_max]));
    store.check();
}

TEST_CASE_METHOD(Fixture, "batches of any size, though nobody waits for their parts")
{
    Store store = Store::create(path, small_store(36, 4));
    std::vector<std::string> keys;
    for (int i = 0; i < 1100; i++)
        keys.push_back("key" + std::to_string(i));
    const std::vector<std::string_view> names(keys.begin(), keys.end());
    std::vector<KeyValue> pairs;
    for (std::string_view name : names)
        pairs.push_back({name, name});
    store.put_batch(pairs);
    REQUIRE(store.get(keys.back()) == keys.back());
    REQUIRE(store.erase_batch(names) == keys.size());
    store.put_batch(pairs);
    store.erase_all();
    store.check();
    REQUIRE_FALSE(store.exists(keys[0]));
}

TEST_CASE_METHOD(Fixture, "a batch as a whole, of colliding keys, and of too many")
{
    Store store = Store::create(path, small_store(5, 3));
    std::vector<std::string> keys;
    for (int i = 0; i < 31; i++)
        keys.push_back("key" + std::to_string(i));
    std::vector<KeyValue> pairs;
    for (const std::string &key : keys)
        pairs.push_back({key, key});
    pairs.push_back({"key0", "twice"});
    size_t stored = 0;
    for (size_t n = pairs.size(); n > 0 && !stored; n--)
        if (error_of(
                [&] { store.put_batch(std::span(pairs).first(n), 0, Store::Atomic::whole); }) == 0)
            stored = n;
        else
            REQUIRE_FALSE(store.begin().next()); // none of them
    REQUIRE(stored > 20);
    store.check();
    for (size_t i = 1; i < std::min<size_t>(stored, 31); i++)
        REQUIRE(store.get(keys[i]) == keys[i]);
}

TEST_CASE_METHOD(Fixture, "a store that is full says so, and keeps what it has")
{
    Options options = small_store();
    options.max_size = 4 << 20;
    Store store = Store::create(path, options);
    std::map<std::string, char> model;
    int error = 0;
    for (int i = 0; i < 5000 && error == 0; i++) {
        const std::string key = "key" + std::to_string(i);
        error = error_of([&] { store.put(key, std::string(1000, 'a' + i % 26)); });
        if (error == 0)
            model[key] = static_cast<char>('a' + i % 26);
    }
    REQUIRE(error == ENOSPC);
    REQUIRE(model.size() > 500);
    store.check();
    for (const auto &[key, c] : model)
        REQUIRE(store.get(key) == std::string(1000, c));
    REQUIRE(store.erase("key0"));
    REQUIRE(store.erase("key1"));
    store.put("key0", "small");
    store.check();
    store.erase_all();
    for (int i = 0; i < 500; i++)
        store.put("other" + std::to_string(i), std::string(1000, 'z'));
    store.check();
}
