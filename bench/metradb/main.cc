/*
 * One store of pairs: how long each operation takes, every change a durable transaction; or how many
 * of them several threads do in a second, each with a store of its own.
 *
 *     bench_metradb latency STORE DIRECTORY PAIRS BYTES
 *     bench_metradb threads STORE DIRECTORY PAIRS BYTES THREADS
 */
#include "harness/clock.h"
#include "harness/sample.h"
#include "metradb/round.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <barrier>
#include <mutex>
#include <thread>

namespace bench
{
namespace
{

constexpr const store_ops *stores[] = {
    &store_metradb, &store_hashmap_tx, &store_hashmap_atomic, &store_ctree,
    &store_btree,   &store_rbtree,     &store_metradb_default};

struct Setting {
    const store_ops *ops;
    std::string directory;
    uint32_t pairs;
    size_t bytes;
    unsigned threads = 1;
};

void measure_latency(const Setting &s)
{
    Store store(*s.ops, s.directory + "/store", s.pairs, s.bytes);
    for (Operation operation : round_of_operations) {
        auto order = store.order(operation);
        double before = processor_ns();
        store.run(operation, order);
        double ns = processor_ns() - before;
        emit({"metradb",
              {operation_names[operation]},
              s.ops->name,
              ns / static_cast<double>(order.size()),
              "ns",
              order.size()});
    }
}

/** What all threads together did of an operation, and how long that took them. */
struct Work {
    double operations = 0;
    double elapsed_ns = 0;   // from when all began until the last had ended
    double processor_ns = 0; // of all threads
};

void report(const Setting &s, Operation operation, const Work &work)
{
    for (const auto &[table, ns] :
         {std::pair{"metradb_threads", work.elapsed_ns}, {"metradb_processors", work.processor_ns}})
        emit({table,
              {s.ops->name, operation_names[operation]},
              std::to_string(s.threads) + (s.threads == 1 ? " thread" : " threads"),
              1e9 * work.operations / ns,
              "/s",
              static_cast<uint64_t>(work.operations)});
}

void measure_threads(const Setting &s)
{
    std::vector<Work> done(std::size(operation_names));
    std::mutex lock; // guards `done`
    std::barrier all(s.threads);
    auto run = [&](unsigned number) {
        Store store(*s.ops, s.directory + "/store" + std::to_string(number), s.pairs, s.bytes);
        for (Operation operation : round_of_operations) {
            auto order = store.order(operation);
            double processor = 0;
            all.arrive_and_wait();
            double elapsed = elapsed_ns([&] {
                double before = processor_ns();
                store.run(operation, order);
                processor = processor_ns() - before;
                all.arrive_and_wait();
            });
            std::lock_guard guard(lock);
            Work &work = done[operation];
            work.operations += static_cast<double>(order.size());
            work.elapsed_ns = std::max(work.elapsed_ns, elapsed);
            work.processor_ns += processor;
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned number = 0; number < s.threads; number++)
        threads.emplace_back(run, number);
    threads.clear(); // joins
    for (Operation operation : round_of_operations)
        report(s, operation, done[operation]);
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    std::string what, name;
    CLI::App app("Time a store of pairs");
    app.add_option("what", what)->required()->check(CLI::IsMember({"latency", "threads"}));
    app.add_option("store", name)->required();
    app.add_option("directory", setting.directory, "for files")->required();
    app.add_option("pairs", setting.pairs)->required();
    app.add_option("bytes", setting.bytes, "of a value, at least 8")
        ->required()
        ->check(CLI::Range(size_t{8}, size_t{1} << 20));
    app.add_option("threads", setting.threads);
    CLI11_PARSE(app, argc, argv);
    try {
        auto found = std::ranges::find(bench::stores, name, &store_ops::name);
        if (found == std::end(bench::stores))
            throw std::runtime_error(name + ": no such store");
        setting.ops = *found;
        if (what == "latency")
            bench::measure_latency(setting);
        else
            bench::measure_threads(setting);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
