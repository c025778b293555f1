/*
 * One cell of the comparison: one peer, one structure, one order of keys, one size. Fills the
 * structure to that size, then times
 *   - lookups of keys that are there,
 *   - for each size of transaction, the insertion of a slice of new keys and the removal of as many
 *     old ones, so that every figure belongs to the same size.
 * Every operation's outcome is counted, and at the end the structure is compared with what it
 * should hold: a wrong structure cannot be a fast one.
 *
 * One process per cell, so that no heap has aged by the cell before.
 */
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "structures/peer.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <stdexcept>

namespace bench
{
namespace
{

constexpr size_t batches[] = {1, 10, 100, 1000};
constexpr size_t warm_up = 1000;

struct Setting {
    std::string structure, order, path;
    size_t keys, slice, lookups;

    bool random() const { return order == "random"; }
};

/** The keys a structure holds, and the choice of those to come and to go. */
class Keys
{
  public:
    explicit Keys(bool random) : random_(random) {}

    /** Keys never handed out before. */
    std::vector<uint64_t> fresh(size_t count)
    {
        std::vector<uint64_t> keys(count);
        for (uint64_t &key : keys)
            key = random_ ? scramble(++next_) : ++next_;
        held_.insert(held_.end(), keys.begin(), keys.end());
        return keys;
    }

    /** Keys to remove: any, or the lowest. */
    std::vector<uint64_t> victims(size_t count)
    {
        for (size_t i = 0; random_ && i < count; i++)
            std::swap(held_[i], held_[i + choice_.below(held_.size() - i)]);
        auto end = held_.begin() + static_cast<std::ptrdiff_t>(count);
        std::vector<uint64_t> keys(held_.begin(), end);
        held_.erase(held_.begin(), end);
        gone_.insert(gone_.end(), keys.begin(), keys.end());
        return keys;
    }

    /** Keys to look up: any, or in ascending order. */
    std::vector<uint64_t> some(size_t count)
    {
        std::vector<uint64_t> keys(count);
        for (size_t i = 0; i < count; i++)
            keys[i] = held_[random_ ? choice_.below(held_.size()) : i % held_.size()];
        return keys;
    }

    const std::vector<uint64_t> &held() const { return held_; }
    const std::vector<uint64_t> &gone() const { return gone_; }

  private:
    bool random_;
    uint64_t next_ = 0;
    Random choice_{1};
    std::vector<uint64_t> held_, gone_;
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

void measure(const Setting &setting)
{
    Keys keys(setting.random());
    const std::vector<std::string> cell = {setting.structure, setting.order,
                                           std::to_string(setting.keys)};

    peer_open(setting.path.c_str(), setting.structure.c_str(), setting.keys + setting.slice);
    run(PEER_INSERT, keys.fresh(setting.keys), peer_preload_batch);

    run(PEER_LOOKUP, keys.some(setting.lookups), setting.lookups);
    emit({"lookup", cell, peer_name, run(PEER_LOOKUP, keys.some(setting.lookups), setting.lookups),
          "ns", setting.lookups});

    run(PEER_INSERT, keys.fresh(warm_up), warm_up);
    run(PEER_REMOVE, keys.victims(warm_up), warm_up);
    for (size_t batch : batches) {
        std::vector<std::string> row = cell;
        row.push_back(std::to_string(batch));
        emit({"insert", row, peer_name, run(PEER_INSERT, keys.fresh(setting.slice), batch), "ns",
              setting.slice});
        emit({"remove", row, peer_name, run(PEER_REMOVE, keys.victims(setting.slice), batch), "ns",
              setting.slice});
    }

    verify(keys);
    peer_close();
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting;
    CLI::App app("Time one structure of one peer");
    app.add_option("structure", setting.structure)->required();
    app.add_option("order", setting.order)
        ->required()
        ->check(CLI::IsMember({"random", "sequential"}));
    app.add_option("keys", setting.keys)->required();
    app.add_option("slice", setting.slice, "insertions and removals timed")->required();
    app.add_option("lookups", setting.lookups, "lookups timed")->required();
    app.add_option("path", setting.path, "file to create")->required();
    CLI11_PARSE(app, argc, argv);
    try {
        bench::measure(setting);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
