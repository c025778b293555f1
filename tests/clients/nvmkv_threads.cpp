// NVMKV with threads that write, read, walk and delete at the same time. To be run under
// ThreadSanitizer too.
#include "nvmkv/nvmkv.hpp"

#include "clients/nvmkv.hpp"

#include <array>
#include <atomic>
#include <thread>

using nvmkv::Durability, nvmkv::KeyValue, nvmkv::Options, nvmkv::Store;
using test::error_of;

namespace
{

constexpr int keys = 40;

std::string key(int i)
{
    return "key" + std::to_string(i);
}

// A value that tells whether all of it is of one put: its number, again and again.
std::string value(uint64_t number)
{
    std::string bytes(8 * (20 + number % 150), '\0');
    for (size_t at = 0; at < bytes.size(); at += 8)
        memcpy(bytes.data() + at, &number, 8);
    return bytes;
}

// The number, or what is wrong.
uint64_t number_of(const std::string &bytes)
{
    uint64_t number;
    if (bytes.size() < 8)
        throw std::runtime_error("a value cut short");
    memcpy(&number, bytes.data(), 8);
    if (bytes != value(number))
        throw std::runtime_error("a torn value");
    return number;
}

// Runs until `done`; what a thread throws fails the test.
class Threads
{
  public:
    template <class Work> void add(Work work)
    {
        threads_.emplace_back([this, work, i = threads_.size()] {
            try {
                work(done);
            } catch (const std::exception &error) {
                errors_.at(i) = error.what();
                done = true;
            }
        });
    }
    void end()
    {
        done = true;
        threads_.clear();
        for (const std::string &error : errors_)
            REQUIRE(error == "");
    }

    std::atomic<bool> done{false};

  private:
    std::array<std::string, 16> errors_;
    std::vector<std::jthread> threads_;
};

Options options(Durability durability)
{
    Options options = test::small_store(7); // so that keys collide
    options.durability = durability;
    return options;
}

// Reads until the end: every value is whole, and none is older than one that was seen before.
void read_all(Store &store, const std::atomic<bool> &done)
{
    std::array<uint64_t, keys> seen{};
    std::string bytes;
    while (!done)
        for (int i = 0; i < keys; i++)
            if (store.get(key(i), bytes)) {
                const uint64_t number = number_of(bytes);
                if (number < seen[i])
                    throw std::runtime_error("an old value came back");
                seen[i] = number;
            }
}

} // namespace

TEST_CASE("gets beside puts see whole values, and time goes forward")
{
    test::Directory directory;
    const auto durability = GENERATE(Durability::sync, Durability::async);
    Options how = options(durability);
    how.cache_bytes = GENERATE(0, 32 << 10);
    Store store = Store::create(directory / "store.kv", how);
    Threads threads;
    for (int reader = 0; reader < 2; reader++)
        threads.add([&](auto &done) { read_all(store, done); });
    threads.add([&](auto &done) { // walks meet each of the keys that are always there
        while (!done) {
            int met = 0;
            for (auto walk = store.begin(); walk.next();)
                if (auto pair = walk.get_current()) {
                    number_of(pair->value);
                    met += pair->key.starts_with("fixed");
                }
            if (met > 5)
                throw std::runtime_error("a walk has met a key twice");
        }
    });
    for (int i = 0; i < 5; i++)
        store.put("fixed" + std::to_string(i), value(i));
    std::atomic<uint64_t> number{1};
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < 2; writer++)
        writers.emplace_back([&, writer] {
            for (int n = 0; n < 250; n++) {
                const int i = (n * 2 + writer) % keys; // keys of its own
                store.put(key(i), value(number++));
                if (n % 7 == 0)
                    store.erase(key(i));
            }
        });
    writers.clear();
    threads.end();
    store.check();
}

TEST_CASE("a batch as a whole appears at once")
{
    test::Directory directory;
    Store store = Store::create(directory / "store.kv", options(Durability::sync));
    auto put = [&](uint64_t number) {
        const std::string bytes = value(number);
        std::vector<KeyValue> pairs;
        std::array<std::string, 10> names;
        for (int i = 0; i < 10; i++)
            pairs.push_back({names[i] = key(i), bytes});
        store.put_batch(pairs, 0, Store::Atomic::whole);
    };
    put(0);
    Threads threads;
    for (int reader = 0; reader < 2; reader++)
        threads.add([&](auto &done) {
            const std::string_view names[] = {"key0", "key3", "key9"};
            while (!done) {
                const auto values = store.get_batch(names);
                for (const auto &bytes : values)
                    if (number_of(bytes.value()) != number_of(values[0].value()))
                        throw std::runtime_error("a part of a batch");
            }
        });
    for (uint64_t number = 1; number < 150; number++)
        put(number);
    threads.end();
    store.check();
}

TEST_CASE("readers see nothing of changes that are rolled back")
{
    test::Directory directory;
    Options how = options(Durability::sync);
    how.key_bits = 30;
    how.max_size = 4 << 20;
    Store store = Store::create(directory / "store.kv", how);
    for (int i = 0; i < keys; i++)
        store.put(key(i), value(1));
    Threads threads;
    for (int reader = 0; reader < 2; reader++)
        threads.add([&](auto &done) {
            std::string bytes;
            while (!done)
                for (int i = 0; i < keys; i++)
                    if (!store.get(key(i), bytes) || number_of(bytes) != 1)
                        throw std::runtime_error("a change that failed is seen");
        });
    const std::string large(1 << 20, 'x'), other = value(2);
    for (int n = 0; n < 12; n++) {
        std::array<std::string, 6> names;
        std::vector<KeyValue> pairs;
        for (int i = 0; i < 6; i++)
            pairs.push_back({names[i] = key(i * 5), i < 2 ? std::string_view(other) : large});
        REQUIRE(error_of([&] { store.put_batch(pairs, 0, Store::Atomic::whole); }) == ENOSPC);
    }
    threads.end();
    store.check();
}

TEST_CASE("pools come and go beside readers")
{
    test::Directory directory;
    Store store = Store::create(directory / "store.kv", options(Durability::async));
    for (int i = 0; i < keys; i++)
        store.put(key(i), value(i));
    Threads threads;
    std::atomic<nvmkv::Pool> current{0};
    threads.add([&](auto &done) { read_all(store, done); });
    threads.add([&](auto &done) {
        std::string bytes;
        while (!done) {
            const int error = error_of([&] {
                for (auto walk = store.begin(current); walk.next();)
                    if (auto pair = walk.get_current())
                        number_of(pair->value);
                store.get("key1", bytes, current);
            });
            if (error != 0 && error != ENOENT)
                throw std::runtime_error("an error but ENOENT");
        }
    });
    for (int n = 0; n < 20; n++) {
        const nvmkv::Pool pool = store.create_pool("pool");
        current = pool;
        for (int i = 0; i < 20; i++)
            error_of([&] { store.put(key(i), value(n), pool); }); // some find no place
        store.delete_pool(pool);
    }
    threads.end();
    store.wait_for_deletions();
    store.check();
    for (int i = 0; i < keys; i++)
        REQUIRE(number_of(store.get(key(i)).value()) == static_cast<uint64_t>(i));
}
