/*
 * One peer of the comparison of NVMKV with LevelDB and with the address space below it, in one case:
 *
 *   threads      puts of new keys, then gets of random ones, by 1 to 8 threads
 *   pools        puts and gets by two threads, of 1 to 64 pools, or as many databases
 *   ycsb         YCSB's workloads, by two threads, with caches of several sizes
 *   collisions   gets of NVMKV where keys collide, with its cache of collisions and without
 *
 * Values have 1 KiB, which no compressor makes smaller, and say whose they are; each get looks at
 * that. Disks change their speed by factors from one moment to the next: sync puts are also told
 * relative to the bare disk (file/bare.h). Bytes written are counted where the store hands them on
 * (KeyValueStore::traffic), and, on a disk, also where the disk gets them, until after the store
 * was closed.
 */
#include "file/bare.h"
#include "file/written.h"
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "harness/ycsb.h"
#include "nvmkv/store.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <thread>

namespace bench
{
namespace
{

constexpr size_t value_size = 1024;
constexpr uint64_t user_bytes = key_size + value_size; // of a put

const std::string on_file = "ordinary file";

struct Setting {
    std::string directory, medium, peer, what;
    bool sync = false;

    std::string name() const { return peer + (sync ? ", sync" : ", async"); }
};

/** The store that the directory has, or a new one. */
std::unique_ptr<KeyValueStore> reopen(const Setting &setting, StoreOptions options)
{
    options.directory = setting.directory;
    options.sync = setting.sync;
    if (setting.peer == "LevelDB")
        return make_leveldb(options);
    return setting.peer == "FTL" ? make_ftl(options) : make_nvmkv(options);
}

/** A new one. */
std::unique_ptr<KeyValueStore> open(const Setting &setting, const StoreOptions &options)
{
    namespace fs = std::filesystem;
    for (const auto &old : fs::directory_iterator(setting.directory))
        fs::remove_all(old);
    return reopen(setting, options);
}

/** The value of a key: its number, and noise. */
class Value
{
  public:
    Value() : bytes_(2 * value_size, '\0')
    {
        Random random(1);
        for (size_t at = 0; at < bytes_.size(); at += sizeof(uint64_t)) {
            const uint64_t word = random();
            memcpy(bytes_.data() + at, &word, sizeof word);
        }
    }
    std::string_view of(uint64_t key, Random &random)
    {
        char *begin = bytes_.data() + random.below(value_size);
        memcpy(begin, &key, sizeof key);
        return {begin, value_size};
    }
    static void verify(uint64_t key, const std::string &value)
    {
        if (value.size() != value_size || memcmp(value.data(), &key, sizeof key) != 0)
            throw std::runtime_error("a value is wrong");
    }

  private:
    std::string bytes_;
};

void get(KeyValueStore &store, uint64_t key, std::string &value, size_t instance = 0)
{
    if (!store.get(instance, key, value))
        throw std::runtime_error("a key is missing");
    Value::verify(key, value);
}

struct Run {
    uint64_t operations;
    double ns;
    double per_second() const { return 1e9 * static_cast<double>(operations) / ns; }
};

/** Calls operate(thread's generator, value) in all threads, up to so many times or so long. */
template <class Operate>
Run run(size_t threads, uint64_t most, std::chrono::milliseconds time, uint64_t seed,
        Operate &&operate)
{
    std::atomic<uint64_t> done = 0;
    std::vector<std::exception_ptr> errors(threads);
    const auto deadline = std::chrono::steady_clock::now() + time;
    auto work = [&](size_t thread) {
        try {
            Random random(seed * 100 + thread);
            Value value;
            const uint64_t share = most / threads;
            uint64_t i = 0;
            for (; i < share; i++) {
                if (i % 16 == 0 && std::chrono::steady_clock::now() > deadline)
                    break;
                operate(random, value);
            }
            done += i;
        } catch (...) {
            errors[thread] = std::current_exception();
        }
    };
    const double ns = elapsed_ns([&] {
        std::vector<std::jthread> all;
        for (size_t i = 1; i < threads; i++)
            all.emplace_back(work, i);
        work(0);
    });
    for (const std::exception_ptr &error : errors)
        if (error)
            std::rethrow_exception(error);
    return {done, ns};
}

using std::chrono::milliseconds;

double each(uint64_t before, uint64_t after, uint64_t operations)
{
    return static_cast<double>(after - before) / static_cast<double>(operations);
}

void measure_gets(const Setting &setting, KeyValueStore &store, const std::vector<std::string> &row,
                  uint64_t keys)
{
    const size_t threads = std::stoul(row.back());
    const Traffic before = store.traffic();
    const Run gets = run(threads, 200'000, milliseconds(300), 2, [&](Random &random, Value &) {
        thread_local std::string value;
        get(store, random.below(keys), value);
    });
    emit({"kv_get", row, setting.name(), gets.per_second(), "/s", gets.operations});
    if (threads > 1)
        return;
    const Traffic after = store.traffic();
    const uint64_t count = gets.operations;
    emit({"kv_io",
          {setting.medium, "reads a get"},
          setting.name(),
          each(before.reads, after.reads, count),
          "reads",
          count});
    emit({"kv_io",
          {setting.medium, "bytes read a get"},
          setting.name(),
          each(before.bytes_read, after.bytes_read, count),
          "B",
          count});
}

void report_puts(const Setting &setting, const Traffic &before, const Traffic &after,
                 uint64_t count)
{
    emit({"kv_io",
          {setting.medium, "writes a put"},
          setting.name(),
          each(before.writes, after.writes, count),
          "writes",
          count});
    emit({"kv_io",
          {setting.medium, "waits for the medium a put"},
          setting.name(),
          each(before.syncs, after.syncs, count),
          "waits",
          count});
    emit({"kv_written",
          {setting.medium, "handed on"},
          setting.name(),
          each(before.bytes_written, after.bytes_written, count) / user_bytes,
          "×",
          count});
}

void measure_threads(const Setting &setting)
{
    for (size_t threads : {1, 2, 4, 8}) {
        const std::vector<std::string> row = {setting.medium, std::to_string(threads)};
        auto store = open(setting, {});
        const Traffic empty = store->traffic();
        const auto disk_before = bytes_written(setting.directory);
        std::atomic<uint64_t> next = 0;
        auto put_all = [&] {
            return run(threads, 40'000, milliseconds(500), 1, [&](auto &random, Value &value) {
                const uint64_t key = next++;
                store->put(0, key, value.of(key, random));
            });
        };
        Run puts{};
        if (setting.sync && setting.medium == on_file) {
            BareDisk bare(setting.directory);
            double bare_ns = bare.write_ns();
            puts = put_all();
            bare_ns = (bare_ns + bare.write_ns()) / 2;
            emit({"kv_put_bare",
                  {std::to_string(threads)},
                  setting.name(),
                  puts.per_second() * bare_ns / 1e9,
                  "×",
                  puts.operations});
        } else {
            puts = put_all();
        }
        emit({"kv_put", row, setting.name(), puts.per_second(), "/s", puts.operations});
        if (threads == 1)
            report_puts(setting, empty, store->traffic(), puts.operations);
        if (!setting.sync) // else there are too few keys to ask for
            measure_gets(setting, *store, row, next);
        store.reset();
        const auto disk_after = bytes_written(setting.directory);
        if (threads == 1 && disk_before && disk_after)
            emit({"kv_written",
                  {setting.medium, "to the disk"},
                  setting.name(),
                  static_cast<double>(*disk_after - *disk_before) /
                      static_cast<double>(puts.operations) / user_bytes,
                  "×",
                  puts.operations});
    }
}

void measure_pools(const Setting &setting)
{
    for (size_t instances : {1, 4, 16, 64}) {
        auto store = open(setting, {.instances = instances});
        std::atomic<uint64_t> next = 0;
        const Run puts = run(2, 40'000, milliseconds(500), 1, [&](auto &random, Value &value) {
            const uint64_t key = next++;
            store->put(key % instances, key, value.of(key, random));
        });
        auto report = [&](const char *operation, const Run &run) {
            emit({"kv_pools",
                  {setting.medium, operation, std::to_string(instances)},
                  setting.name(),
                  run.per_second(),
                  "/s",
                  run.operations});
        };
        report("put", puts);
        if (setting.sync) // else there are too few keys to ask for
            continue;
        report("get", run(2, 200'000, milliseconds(300), 2, [&](Random &random, Value &) {
                   thread_local std::string value;
                   const uint64_t key = random.below(next);
                   get(*store, key, value, key % instances);
               }));
    }
}

void measure_ycsb(const Setting &setting)
{
    constexpr uint64_t records = 40'000;
    const Zipfian zipfian(records);
    Setting loading = setting;
    loading.sync = false;
    for (size_t cache_mib : {1, 8, 64}) {
        if (setting.sync && cache_mib != 8) // where each update waits, one size is enough
            continue;
        const StoreOptions options = {.cache_bytes = cache_mib << 20};
        auto store = open(loading, options);
        std::atomic<uint64_t> count = 0;
        run(1, records, std::chrono::minutes(1), 1, [&](Random &random, Value &value) {
            store->put(0, count, value.of(count, random));
            count++;
        });
        if (setting.sync) {
            store.reset();
            store = reopen(setting, options);
        }
        for (const Workload &workload : workloads) {
            const Traffic before = store->traffic();
            std::atomic<uint64_t> puts = 0, inserted = count.load();
            auto operate = [&](Random &random, Value &value) {
                thread_local std::string read;
                const uint64_t dice = random.below(100);
                if (dice >= workload.reads && workload.inserts) {
                    const uint64_t key = inserted++;
                    store->put(0, key, value.of(key, random));
                    puts++;
                    uint64_t expected = key; // known to readers when all before it are there
                    while (!count.compare_exchange_weak(expected, key + 1)) {
                        expected = key;
                        std::this_thread::yield();
                    }
                    return;
                }
                const uint64_t key = choose(workload, zipfian, count, random);
                if (dice < workload.reads || workload.modifies)
                    get(*store, key, read);
                if (dice >= workload.reads) {
                    store->put(0, key, value.of(key, random));
                    puts++;
                }
            };
            const Run all = run(2, 80'000, milliseconds(700), 3, operate);
            const std::vector<std::string> row = {setting.medium, std::string(1, workload.name),
                                                  std::to_string(cache_mib) + " MiB"};
            emit({"ycsb", row, setting.name(), all.per_second(), "/s", all.operations});
            const Traffic after = store->traffic();
            if (puts > 0)
                emit({"ycsb_written", row, setting.name(),
                      each(before.bytes_written, after.bytes_written, puts) / user_bytes, "×",
                      puts});
            if (setting.sync)
                continue;
            for (const auto &[what, ios] : {std::pair{"reads", after.reads - before.reads},
                                            {"writes", after.writes - before.writes}})
                emit({"ycsb_io", row, setting.peer + ", " + what, each(0, ios, all.operations),
                      "I/Os", all.operations});
        }
    }
}

void measure_collisions(const Setting &setting)
{
    constexpr uint64_t records = 20'000;
    for (unsigned key_bits : {15, 16, 18}) { // 61, 31 and 8 percent full
        const std::string row =
            std::to_string(100 * records >> key_bits) + " % of 2^" + std::to_string(key_bits);
        for (bool cache : {true, false}) {
            auto store = open(setting, {.collision_cache = cache, .key_bits = key_bits});
            Random random(1);
            Value value;
            std::vector<uint64_t> keys; // a few find no place
            for (uint64_t key = 0; key < records; key++)
                try {
                    store->put(0, key, value.of(key, random));
                    keys.push_back(key);
                } catch (const std::system_error &) {
                }
            // As many keys as the cache can know of are asked for again and again.
            const uint64_t hot = std::min<uint64_t>(keys.size(), 4096);
            uint64_t before = 0;
            Run gets{};
            for (int turn = 0; turn < 2; turn++) { // the second one counts
                before = store->traffic().reads;
                gets = run(1, 100'000, milliseconds(500), 2, [&](Random &random, Value &) {
                    thread_local std::string value;
                    get(*store, keys[random.below(hot)], value);
                });
            }
            const std::string column = cache ? "collision cache" : "none";
            emit(
                {"kv_collisions", {row, "gets"}, column, gets.per_second(), "/s", gets.operations});
            emit({"kv_collisions",
                  {row, "reads a get"},
                  column,
                  each(before, store->traffic().reads, gets.operations),
                  "reads",
                  gets.operations});
        }
    }
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting;
    const std::map<std::string, void (*)(const bench::Setting &)> cases = {
        {"threads", bench::measure_threads},
        {"pools", bench::measure_pools},
        {"ycsb", bench::measure_ycsb},
        {"collisions", bench::measure_collisions}};
    CLI::App app("Time a key-value store");
    app.add_option("what", setting.what)->required()->check(CLI::IsMember(cases));
    app.add_option("peer", setting.peer)
        ->required()
        ->check(CLI::IsMember({"NVMKV", "FTL", "LevelDB"}));
    app.add_option("medium", setting.medium, "what the tables call it")->required();
    app.add_option("directory", setting.directory, "an empty one")->required();
    app.add_flag("--sync", setting.sync, "puts wait for the medium");
    CLI11_PARSE(app, argc, argv);
    try {
        cases.at(setting.what)(setting);
    } catch (const std::exception &error) {
        std::cerr << setting.name() << ": " << error.what() << '\n';
        return 1;
    }
}
