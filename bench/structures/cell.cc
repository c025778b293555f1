/*
 * One cell of the comparison: one peer, one structure, one order of keys, one size. Fills the
 * structure to that size, then times
 *   - lookups of keys that are there,
 *   - for each size of transaction, the insertion of a slice of new keys and the removal of as many
 *     old ones, so that every figure belongs to the same size; fast peers do it several times over.
 * A peer that counts what it writes also has that reported: bytes logged by a commit, and bytes to
 * the medium for each byte of a key or value inserted or removed.
 *
 * Every operation's outcome is counted, and at the end the structure is compared with what it
 * should hold: a wrong structure cannot be a fast one.
 *
 * One process per cell, so that no heap has aged by the cell before.
 */
#include "harness/clock.h"
#include "harness/sample.h"
#include "harness/status.h"
#include "structures/keys.h"
#include "structures/peer.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <stdexcept>

size_t peer_log_bytes;

namespace bench
{
namespace
{

constexpr size_t batches[] = {1, 10, 100, 1000, 10'000};
constexpr size_t rounds_max = 25;
constexpr double ns_enough = 20e6; // then no further round

constexpr double line_bytes = 64;
constexpr double pair_bytes = 16; // a key and its value

struct Setting {
    std::string structure, order, path;
    size_t keys, slice, lookups;
    std::vector<size_t> log_bytes; // for each figure of an operation and batch, in their order

    bool random() const { return order == "random"; }
};

void require(bool holds, const std::string &what)
{
    if (!holds)
        throw std::runtime_error(std::string(peer_name) + ": " + what);
}

/** Nanoseconds an operation; all of them must do what they should. */
double run(peer_operation op, std::span<const uint64_t> keys, size_t batch)
{
    size_t done = 0;
    double ns = elapsed_ns([&] {
        for (size_t at = 0, count; at < keys.size(); at += count) {
            count = std::min(batch, keys.size() - at);
            done += peer_apply(op, keys.data() + at, count);
        }
    });
    require(done == keys.size(), "an operation went wrong");
    return ns / static_cast<double>(keys.size());
}

void verify(const Keys &keys)
{
    const auto &held = keys.held(), &gone = keys.gone();
    require(peer_size() == held.size(), "the structure's size is wrong");
    require(peer_apply(PEER_LOOKUP, held.data(), held.size()) == held.size(), "keys were lost");
    require(peer_apply(PEER_LOOKUP, gone.data(), gone.size()) == 0, "removed keys are there");
}

/** One operation in transactions of one size: adds up what all rounds took and wrote. */
class Figure
{
  public:
    Figure(peer_operation op, size_t batch, size_t log_bytes)
        : op_(op), batch_(batch), log_bytes_(log_bytes)
    {
    }

    void round(const std::vector<uint64_t> &keys)
    {
        peer_counts before, after;
        peer_log_bytes = log_bytes_;
        counted_ = peer_read_counts(&before);
        ns_ += run(op_, keys, batch_) * static_cast<double>(keys.size());
        counted_ = counted_ && peer_read_counts(&after);
        peer_log_bytes = 0;
        operations_ += keys.size();
        if (counted_) {
            commits_ += after.commits - before.commits;
            bytes_logged_ += after.bytes_logged - before.bytes_logged;
            lines_flushed_ += after.lines_flushed - before.lines_flushed;
        }
    }

    double ns() const { return ns_; }

    void report(std::vector<std::string> row) const
    {
        const std::string operation = op_ == PEER_INSERT ? "insert" : "remove";
        auto count = static_cast<double>(operations_);
        row.push_back(std::to_string(batch_));
        emit({operation, row, peer_name, ns_ / count, "ns", operations_});
        if (!counted_)
            return;

        auto logged = static_cast<double>(bytes_logged_);
        auto written = logged + line_bytes * static_cast<double>(lines_flushed_);
        row.insert(row.end() - 1, operation);
        if (logged > 0)
            emit({"log", row, peer_name, logged / static_cast<double>(commits_), "B", operations_});
        emit({"written", row, peer_name, written / (count * pair_bytes), "×", operations_});
    }

  private:
    peer_operation op_;
    size_t batch_, log_bytes_;
    double ns_ = 0;
    bool counted_ = false;
    uint64_t operations_ = 0, commits_ = 0, bytes_logged_ = 0, lines_flushed_ = 0;
};

void measure(const Setting &setting)
{
    Keys keys(setting.random());
    const std::vector<std::string> cell = {setting.structure, setting.order,
                                           std::to_string(setting.keys)};

    peer_open(setting.path.c_str(), setting.structure.c_str(), 2 * setting.keys);
    run(PEER_INSERT, keys.fresh(setting.keys), peer_preload_batch);

    run(PEER_LOOKUP, keys.some(setting.lookups), setting.lookups);
    emit({"lookup", cell, peer_name, run(PEER_LOOKUP, keys.some(setting.lookups), setting.lookups),
          "ns", setting.lookups});

    auto log_bytes = setting.log_bytes.begin();
    auto next_log_bytes = [&] { return log_bytes == setting.log_bytes.end() ? 0 : *log_bytes++; };
    for (size_t batch : batches) {
        size_t slice = std::max(setting.slice, batch);
        if (slice > setting.keys / 2)
            break;
        run(PEER_INSERT, keys.fresh(slice), batch); // which pages stay open depends on the batch
        run(PEER_REMOVE, keys.victims(slice), batch);
        Figure insert(PEER_INSERT, batch, next_log_bytes());
        Figure remove(PEER_REMOVE, batch, next_log_bytes());
        for (size_t i = 0; i < rounds_max && insert.ns() + remove.ns() < ns_enough; i++) {
            insert.round(keys.fresh(slice));
            remove.round(keys.victims(slice));
        }
        insert.report(cell);
        remove.report(cell);
    }

    verify(keys);
    peer_close();
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Time one structure of one peer");
    app.add_option("structure", setting.structure)->required();
    app.add_option("order", setting.order)
        ->required()
        ->check(CLI::IsMember({"random", "sequential"}));
    app.add_option("keys", setting.keys)->required();
    app.add_option("slice", setting.slice, "insertions and removals timed at a time")->required();
    app.add_option("lookups", setting.lookups, "lookups timed")->required();
    app.add_option("path", setting.path, "file to create")->required();
    app.add_option("--log-bytes", setting.log_bytes,
                   "what each commit logs: for insertions and removals, for each batch in turn");
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::measure(setting); });
}
