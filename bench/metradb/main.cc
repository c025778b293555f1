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
#include <thread>

namespace bench
{
namespace
{

constexpr const store_ops *stores[] = {&store_metradb, &store_hashmap_tx, &store_hashmap_atomic,
                                       &store_ctree,   &store_btree,      &store_rbtree};

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
    for (Operation operation : round_trip) {
        auto order = store.order(operation);
        double ns = elapsed_ns([&] { store.run(operation, order); });
        emit({"metradb", {operation_names[operation]}, s.ops->name, ns / s.pairs, "ns", s.pairs});
    }
}

/** Operations of all threads together, from when all begin until the last has ended. */
void measure_threads(const Setting &s)
{
    std::vector<double> ns(std::size(operation_names));
    std::barrier all(s.threads);
    auto work = [&](unsigned number) {
        Store store(*s.ops, s.directory + "/store" + std::to_string(number), s.pairs, s.bytes);
        for (Operation operation : round_trip) {
            auto order = store.order(operation);
            all.arrive_and_wait();
            double elapsed = elapsed_ns([&] {
                store.run(operation, order);
                all.arrive_and_wait();
            });
            if (number == 0)
                ns[operation] = elapsed;
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned number = 0; number < s.threads; number++)
        threads.emplace_back(work, number);
    threads.clear(); // joins
    for (Operation operation : round_trip)
        emit({"metradb_threads",
              {s.ops->name, operation_names[operation]},
              std::to_string(s.threads) + (s.threads == 1 ? " thread" : " threads"),
              1e9 * s.pairs * s.threads / ns[operation],
              "/s",
              s.pairs});
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
