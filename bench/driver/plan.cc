#include "driver/plan.h"

#include <algorithm>
#include <span>

namespace bench
{
namespace
{

const char *const peers[] = {"malloc", "libpm", "pmemobj"};
const char *const structures[] = {"rbtree", "btree", "skiplist", "hashmap"};
const char *const orders[] = {"random", "sequential"};
// The chase comes several times: how fast DRAM is depends on where pages happen to lie.
const char *const micros[] = {"fault",  "chase", "allocate", "chase",
                              "update", "chase", "memory",   "recovery"};
constexpr size_t sizes[] = {10'000, 100'000, 1'000'000};

constexpr size_t slice_max = 10'000; // insertions and removals timed
constexpr size_t lookups = 200'000;

} // namespace

std::vector<std::vector<std::string>> Plan::commands(size_t repetition,
                                                     const std::string &directory) const
{
    std::vector<std::vector<std::string>> commands;
    for (size_t keys : std::span(sizes).first(quick ? 1 : std::size(sizes)))
        for (const char *structure : structures)
            for (const char *order : orders)
                for (size_t i = 0; i < std::size(peers); i++) {
                    const char *peer = peers[(i + repetition) % std::size(peers)];
                    commands.push_back({programs + "/bench_" + peer, structure, order,
                                        std::to_string(keys),
                                        std::to_string(std::min(slice_max, keys / 2)),
                                        std::to_string(lookups), directory + "/map"});
                }
    for (const char *micro : micros)
        commands.push_back({programs + "/bench_micro", micro, directory});
    return commands;
}

} // namespace bench
