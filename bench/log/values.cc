/*
 * The workloads of values.h, one operation a commit. Of `insert` all keys are new, and as likely: in sps both
 * elements are any. Of `update` 90 % are of 15 % of the keys. Of `mixed` each tenth operation is an insert, and
 * the others are updates. A program with nvm.c emulates a slow medium.
 */
#include "log/values.h"
#include "harness/clock.h"
#include "harness/sample.h"
#include "harness/status.h"
#include "log/nvm.h"
#include "log/skewed.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

namespace bench
{
namespace
{

constexpr uint64_t filled_together = 1000;

struct Setting {
    std::string structure, workload, path;
    uint64_t values, operations;
    unsigned live_percent;
    std::string nvm;

    bool swaps() const { return structure == "sps"; }
};

uint64_t key_of(uint64_t number)
{
    return scramble(number + 1);
}

void fill(const Setting &setting)
{
    for (uint64_t i = 0; i < setting.values;) {
        values_begin();
        for (uint64_t n = 0; n < filled_together && i < setting.values; n++, i++)
            setting.swaps() ? values_update(i, i) : values_insert(key_of(i), i);
        values_commit();
    }
}

/** The sum of all values' first words: a swap leaves it, an update changes it as is known. */
uint64_t sum(const Setting &setting, uint64_t values)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < values; i++)
        sum += values_first(setting.swaps() ? i : key_of(i));
    return sum;
}

void measure(const Setting &setting)
{
    const bool inserts = setting.workload == "insert", mixed = setting.workload == "mixed";
    values_open(setting.path.c_str(), setting.structure.c_str(), 2 * setting.values,
                setting.live_percent);
    fill(setting);
    Random random(1);
    const Skewed skewed(setting.values);
    uint64_t number = setting.values, held = setting.values;
    const auto choose = [&] { return inserts ? random.below(setting.values) : skewed(random); };
    uint64_t expected = sum(setting, held);
    const auto step = [&] {
        values_begin();
        if (setting.swaps()) {
            const uint64_t a = choose(), b = choose();
            values_swap(a, b);
        } else if (inserts || (mixed && number % 10 == 0)) {
            values_insert(key_of(held++), number);
            expected += number++;
        } else {
            const uint64_t key = key_of(choose());
            expected += number - values_first(key);
            values_update(key, number++);
        }
        values_commit();
    };
    if (nvm_start)
        nvm_start(setting.nvm == "drains");
    for (uint64_t i = 0; i < setting.operations; i++) // caches, pages, and chunks to clean
        step();
    const uint64_t before = values_written();
    const double ns = elapsed_ns([&] {
        for (uint64_t i = 0; i < setting.operations; i++)
            step();
    });
    const auto operations = static_cast<double>(setting.operations);
    std::vector<std::string> row = {setting.structure, setting.workload};
    if (nvm_start)
        row.push_back(setting.nvm);
    emit({nvm_start ? "values_nvm" : "values", row, values_peer, ns / operations, "ns",
          setting.operations});
    if (!nvm_start && before != UINT64_MAX)
        emit({"values_written", row, values_peer,
              static_cast<double>(values_written() - before) / operations, "B",
              setting.operations});
    if (sum(setting, held) != expected)
        throw std::runtime_error(std::string(values_peer) + ": values are wrong");
    values_close();
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Time one workload on one structure of values");
    app.add_option("structure", setting.structure)
        ->required()
        ->check(CLI::IsMember({"sps", "rbtree", "btree", "hashmap"}));
    app.add_option("workload", setting.workload)
        ->required()
        ->check(CLI::IsMember({"insert", "update", "mixed"}));
    app.add_option("values", setting.values, "that are there at first")->required();
    app.add_option("operations", setting.operations,
                   "timed, and as many before; inserts among them: at most half of the values")
        ->required();
    app.add_option("path", setting.path, "file to create")->required();
    app.add_option("--live-percent", setting.live_percent, "of libpm's log engine");
    if (nvm_start)
        app.add_option("--nvm", setting.nvm, "how the slow medium takes lines")
            ->required()
            ->check(CLI::IsMember({"stalls", "drains"}));
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::measure(setting); });
}
