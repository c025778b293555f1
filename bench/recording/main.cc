/*
 * What recording pointers costs: the same code inserts the same keys into the same structure, in a
 * container that is PM_MOVABLE and in one that is not.
 *
 * Both are in one process and take turns by the slice, of some milliseconds. What shall be seen is a
 * tenth of an insertion; but on a machine that is shared two processes differ by more than that, for
 * each has its own pages, and neighbours of its own for as long as it runs. So the figure is the
 * median of many slices, of which either had as many good moments as the other.
 */
#include "common/map.h"
#include "harness/clock.h"
#include "harness/mode.h"
#include "harness/sample.h"
#include "harness/status.h"
#include "structures/keys.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <stdexcept>

namespace bench
{
namespace
{

constexpr size_t batches[] = {1, 1000};
constexpr size_t slices = 101, slice = 2000;

struct Setting {
    std::string structure, order, directory;
    size_t keys;
};

void require(bool holds, const char *what)
{
    if (!holds)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

const map_ops &operations_of(const std::string &structure)
{
    for (const map_ops *ops : map_ops_all)
        if (structure == ops->name)
            return *ops;
    throw std::runtime_error(structure + ": no such structure");
}

/** A structure in a container of its own. */
class Contender
{
  public:
    Contender(const char *peer, unsigned flags, const Setting &setting)
        : peer_(peer), path_(setting.directory + "/recording-" + std::to_string(flags)),
          ops_(operations_of(setting.structure))
    {
        pm_options options = mode_options();
        options.flags |= flags;
        container_ = pm_open(path_.c_str(), &options);
        require(container_, "pm_open");
        map_ = ops_.create(container_);
        require(map_ && pm_setroot(container_, map_, 0) == 0, "create");
    }

    ~Contender()
    {
        pm_close(container_);
        std::remove(path_.c_str());
    }

    Contender(const Contender &) = delete;
    Contender &operator=(const Contender &) = delete;

    void insert(std::span<const uint64_t> keys, size_t batch)
    {
        apply(keys, batch, [&](uint64_t key) { return ops_.insert(container_, map_, key, ~key); });
    }

    void remove(std::span<const uint64_t> keys, size_t batch)
    {
        apply(keys, batch, [&](uint64_t key) { return ops_.remove(container_, map_, key); });
    }

    void time_insertion(std::span<const uint64_t> keys, size_t batch)
    {
        ns_.push_back(elapsed_ns([&] { insert(keys, batch); }) / static_cast<double>(keys.size()));
    }

    /** The median of what was timed, which is forgotten. */
    void report(const std::vector<std::string> &row)
    {
        auto middle = ns_.begin() + static_cast<std::ptrdiff_t>(ns_.size() / 2);
        std::nth_element(ns_.begin(), middle, ns_.end());
        emit({"insert_movable", row, peer_, *middle, "ns", ns_.size() * slice});
        ns_.clear();
    }

    void verify(size_t keys) const
    {
        require(ops_.size(map_) == keys && !ops_.check(map_), "the structure is wrong");
        require(pm_check(container_) == 0, "pm_check");
    }

  private:
    template <class Step> void apply(std::span<const uint64_t> keys, size_t batch, Step &&step)
    {
        size_t right = 0;
        for (size_t done = 0; done < keys.size(); done += batch) {
            for (uint64_t key : keys.subspan(done, std::min(batch, keys.size() - done)))
                right += step(key) == 1;
            require(pm_commit(container_) == 0, "pm_commit");
        }
        require(right == keys.size(), "an operation went wrong");
    }

    const char *peer_;
    std::string path_;
    const map_ops &ops_;
    pm_container *container_;
    void *map_;
    std::vector<double> ns_;
};

void measure(const Setting &setting)
{
    Contender plain("redo/stores", 0, setting);
    Contender movable("redo/stores, movable", PM_MOVABLE, setting);
    Contender *turns[] = {&plain, &movable};
    Keys keys(setting.order == "random");
    const auto preload = keys.fresh(setting.keys);
    for (Contender *contender : turns)
        contender->insert(preload, preload.size());

    for (size_t batch : batches) {
        for (size_t i = 0; i <= slices; i++) {
            const auto fresh = keys.fresh(slice), victims = keys.victims(slice);
            for (Contender *contender : turns) {
                if (i == 0) // which pages stay open depends on the batch
                    contender->insert(fresh, batch);
                else
                    contender->time_insertion(fresh, batch);
                contender->remove(victims, batch);
            }
            std::swap(turns[0], turns[1]);
        }
        for (Contender *contender : turns)
            contender->report({setting.structure, setting.order, std::to_string(setting.keys),
                               std::to_string(batch)});
    }
    for (const Contender *contender : turns)
        contender->verify(setting.keys);
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Time insertions into a structure whose pointers are recorded");
    app.add_option("structure", setting.structure)->required();
    app.add_option("order", setting.order)
        ->required()
        ->check(CLI::IsMember({"random", "sequential"}));
    app.add_option("keys", setting.keys)->required();
    app.add_option("directory", setting.directory, "where to make the containers")->required();
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::measure(setting); });
}
