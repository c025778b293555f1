// NVMKV where a commit is not durable at once. Every container here is on an ordinary file.
#include "nvmkv/nvmkv.hpp"

#include "clients/nvmkv.hpp"
#include "common/file_medium.hpp"

#include <atomic>
#include <thread>

using nvmkv::Durability, nvmkv::Store;
using test::error_of, test::file_medium;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "store.kv";

    Fixture() { file_medium = {}; }
    ~Fixture() { file_medium = {}; }
    Store create(Durability durability)
    {
        nvmkv::Options options = test::small_store();
        options.durability = durability;
        return Store::create(path, options);
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "a put is one wait for the medium, a batch too, and a get none")
{
    Store store = create(Durability::sync);
    const nvmkv::KeyValue pairs[] = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
    for (int i = 0; i < 2; i++) { // the container grows, which is a wait too
        store.put("key", "1");
        store.put_batch(pairs);
    }
    const uint64_t before = file_medium.syncs;
    store.put("key", "2");
    REQUIRE(file_medium.syncs == before + 1);
    store.put_batch(pairs);
    REQUIRE(file_medium.syncs == before + 2);
    REQUIRE(store.get("key") == "2");
    REQUIRE_FALSE(store.erase("none"));
    REQUIRE(file_medium.syncs == before + 2);
}

TEST_CASE_METHOD(Fixture, "async puts do not wait, and are seen at once")
{
    Store store = create(Durability::async);
    const uint64_t before = file_medium.syncs;
    for (int i = 0; i < 10; i++)
        store.put("key", std::to_string(i));
    REQUIRE(file_medium.syncs == before);
    REQUIRE(store.get("key") == "9");
    store.flush();
    REQUIRE(file_medium.syncs == before + 1);
}

TEST_CASE_METHOD(Fixture, "a put is seen when it is durable, not before")
{
    Store store = create(Durability::sync);
    store.put("key", "old");
    file_medium.sync_us = 100'000;
    std::atomic<bool> returned{false};
    std::jthread writer([&] {
        store.put("key", "new");
        returned = true;
    });
    for (std::string value = "old"; value == "old";) {
        const bool before = returned;
        value = store.get("key").value();
        REQUIRE((value == "new" || !before));
    }
    writer.join();
    REQUIRE(store.get("key") == "new");
}

TEST_CASE_METHOD(Fixture, "threads share their waits")
{
    Store store = create(Durability::sync);
    file_medium.sync_us = 2000;
    const uint64_t before = file_medium.syncs;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; thread++)
        threads.emplace_back([&store, thread] {
            for (int i = 0; i < 25; i++)
                store.put("key" + std::to_string(thread * 100 + i), "value");
        });
    threads.clear();
    REQUIRE(file_medium.syncs - before < 80); // of 100 puts
    store.check();
}

TEST_CASE_METHOD(Fixture, "when the medium fails, what was acknowledged is still read")
{
    const auto durability = GENERATE(Durability::sync, Durability::async);
    const bool writes = GENERATE(false, true); // or only fdatasync(2)
    {
        Store store = create(durability);
        store.put("key", "old");
        store.flush();
        (writes ? file_medium.write_fails : file_medium.sync_fails) = 1;
        file_medium.write_error = file_medium.sync_error = EIO;
        auto put = [&] {
            store.put("key", "new");
            store.flush();
        };
        const bool seen = durability == Durability::async && !writes; // it was acknowledged
        for (int turn = 0; turn < 2; turn++) {
            REQUIRE(error_of(put) == EIO);
            REQUIRE(store.get("key") == (seen ? "new" : "old"));
            REQUIRE(error_of([&] { store.erase("key"); }) == EIO);
            REQUIRE(store.get("key") == (seen ? "new" : "old"));
        }
    }
    file_medium = {};
    Store store = Store::open(path);
    REQUIRE(store.get("key"));
    store.check();
}
