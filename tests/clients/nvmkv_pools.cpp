// NVMKV's pools, and walks.
#include "nvmkv/nvmkv.hpp"

#include "clients/nvmkv.hpp"

#include <set>

using nvmkv::Pool, nvmkv::Store;
using test::error_of;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "store.kv";
    std::optional<Store> store;

    explicit Fixture(unsigned key_bits = 36, unsigned value_bits = 12)
    {
        store.emplace(Store::create(path, test::small_store(key_bits, value_bits)));
    }
    void reopen()
    {
        store.reset();
        store.emplace(Store::open(path));
    }
    void fill(Pool pool, int count)
    {
        for (int i = 0; i < count; i++)
            store->put("key" + std::to_string(i), "of " + std::to_string(pool), pool);
    }
    std::set<std::string> keys(Store::Iterator walk)
    {
        std::set<std::string> keys;
        while (walk.next())
            REQUIRE(keys.insert(walk.get_current()->key).second);
        return keys;
    }
};

struct Crowded : Fixture {
    Crowded() : Fixture(6, 3) {} // pools 0, 1, 2; 63 pairs
};

} // namespace

TEST_CASE_METHOD(Fixture, "the same key in two pools is two keys")
{
    const Pool a = store->create_pool("a"), b = store->create_pool("b");
    REQUIRE(a != b);
    fill(a, 20), fill(b, 30), fill(0, 10);
    REQUIRE(store->get("key5", a) == "of " + std::to_string(a));
    REQUIRE(store->get("key5", b) == "of " + std::to_string(b));
    REQUIRE(store->get("key5") == "of 0");
    REQUIRE_FALSE(store->get("key15"));
    REQUIRE(keys(store->begin(a)).size() == 20);
    REQUIRE(keys(store->begin(b)).size() == 30);
    REQUIRE(store->pool_info(b).pairs == 30);
    REQUIRE(store->pool_info(b).sectors == 30);
    REQUIRE(store->pool_info(b).name == "b");
    REQUIRE(store->pools().size() == 3);
    size_t all = 0;
    for (auto walk = store->begin(); walk.next();)
        all++;
    REQUIRE(all == 60);
    store->check();
    reopen();
    REQUIRE(store->find_pool("b") == b);
    REQUIRE(keys(store->begin(b)).size() == 30);
    store->erase_all();
    REQUIRE(store->pool_exists(b));
    REQUIRE(store->pool_info(b).pairs == 0);
    store->check();
}

TEST_CASE_METHOD(Crowded, "names and numbers of pools, and no more of them")
{
    REQUIRE(store->info().pools_max == 3);
    for (const std::string &name : {std::string(), std::string(64, 'x'), std::string("a\0b", 3)})
        REQUIRE(error_of([&] { store->create_pool(name); }) == EINVAL);
    const Pool a = store->create_pool(std::string(63, 'x')), b = store->create_pool("b");
    REQUIRE(error_of([&] { store->create_pool("b"); }) == EEXIST);
    REQUIRE(error_of([&] { store->create_pool("c"); }) == EMFILE);
    reopen();
    REQUIRE(store->find_pool(std::string(63, 'x')) == a);
    REQUIRE(error_of([&] { store->create_pool("c"); }) == EMFILE);
    REQUIRE(error_of([&] { store->delete_pool(0); }) == EINVAL);
    for (Pool none : {Pool{3}, Pool{1000000}}) {
        REQUIRE_FALSE(store->pool_exists(none));
        REQUIRE(error_of([&] { store->delete_pool(none); }) == ENOENT);
        REQUIRE(error_of([&] { store->put("k", "v", none); }) == ENOENT);
        REQUIRE(error_of([&] { store->get("k", none); }) == ENOENT);
        REQUIRE(error_of([&] { store->begin(none); }) == ENOENT);
        REQUIRE(error_of([&] { store->pool_info(none); }) == ENOENT);
    }
    store->delete_pool(b);
    store->wait_for_deletions();
    REQUIRE(store->create_pool("c") == b); // its number is free again
    store->check();
}

TEST_CASE_METHOD(Crowded, "a deleted pool is gone at once, and its pairs soon, others' not")
{
    const Pool a = store->create_pool("a");
    fill(0, 20), fill(a, 20); // many of them displaced by the others
    store->delete_pool(a);
    REQUIRE_FALSE(store->pool_exists(a));
    REQUIRE_FALSE(store->find_pool("a"));
    REQUIRE(error_of([&] { store->get("key1", a); }) == ENOENT);
    REQUIRE(error_of([&] { store->put("key1", "x", a); }) == ENOENT);
    REQUIRE(keys(store->begin()).size() == 20);
    if (GENERATE(false, true))
        reopen(); // in the middle, perhaps
    store->wait_for_deletions();
    store->check();
    for (int i = 0; i < 20; i++)
        REQUIRE(store->get("key" + std::to_string(i)) == "of 0");
    const Pool again = store->create_pool("a");
    REQUIRE(again == a);
    REQUIRE_FALSE(store->get("key1", again));
    REQUIRE(keys(store->begin(again)).empty());
    store->check();
}

TEST_CASE_METHOD(Fixture, "a pool deleted while it is walked ends the walk")
{
    const Pool a = store->create_pool("a");
    fill(a, 50);
    auto walk = store->begin(a);
    for (int i = 0; i < 10; i++)
        REQUIRE(walk.next());
    REQUIRE(walk.get_current());
    store->delete_pool(a);
    REQUIRE_FALSE(walk.get_current());
    REQUIRE(error_of([&] { walk.next(); }) == ENOENT);
    store->wait_for_deletions();
    REQUIRE(store->create_pool("b") == a); // another one of its number
    fill(a, 50);
    REQUIRE(error_of([&] { walk.next(); }) == ENOENT);
    REQUIRE_FALSE(walk.get_current());
}

TEST_CASE_METHOD(Fixture, "a walk goes on in a store that has been moved")
{
    fill(0, 10);
    auto walk = store->begin(0);
    REQUIRE(walk.next());
    Store moved = std::move(*store);
    REQUIRE(walk.get_current());
    int more = 0;
    while (walk.next())
        more++;
    REQUIRE(more == 9);
}

TEST_CASE_METHOD(Fixture, "a walk while the store changes")
{
    fill(0, 100);
    std::set<std::string> met;
    auto walk = store->begin(0);
    REQUIRE_FALSE(walk.get_current()); // it has not begun
    for (int i = 0; walk.next(); i++) {
        auto pair = walk.get_current();
        REQUIRE(met.insert(pair->key).second);
        store->put(pair->key, "another value");
        REQUIRE(walk.get_current()->value == "another value");
        if (i % 2) {
            store->erase(pair->key);
            REQUIRE_FALSE(walk.get_current());
        }
    }
    REQUIRE(met.size() == 100); // all that were there all the time
    REQUIRE_FALSE(walk.get_current());
    REQUIRE_FALSE(walk.next());
    REQUIRE(keys(store->begin()).size() == 50);
}
