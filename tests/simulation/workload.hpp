// What simulated programs do: an endless sequence of transactions, each a function of the seed and
// its number, and a model that does the same. One of the example structures with mixed inserts and
// removals; objects that come and go, small and large, and are changed in place; now and then a
// rollback, a new root, or all is cleared.
#ifndef TESTS_SIMULATION_WORKLOAD_HPP
#define TESTS_SIMULATION_WORKLOAD_HPP

#include <common/map.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace simulation
{

// What is how likely. Percentages are of operations, or of transactions.
struct Profile {
    const char *name;
    uint64_t keys;
    unsigned operations_min, operations_max; // of a transaction
    unsigned removes, blobs, edits;          // % of operations; the rest inserts
    unsigned slots;                          // for blobs, at most BLOBS
    unsigned small;                          // % of blobs that have at most 200 bytes
    uint64_t blob_max;                       // bytes
    unsigned rollbacks, roots, clears;       // % of transactions
    bool reclaims = false; // instead: slabs come and go, and the log takes their segments
    bool puts =
        false; // blobs are handed over, and segments are large enough for parts of whole pages
    bool waves = false; // instead: much comes and goes, so that the log engine's file gets shorter
};

const Profile &profile_by_name(const std::string &name);
const map_ops &structure_by_name(const std::string &name);

constexpr unsigned BLOBS = 16;
constexpr uint64_t STAMP_WORDS = 16384; // two segments

// The root object.
struct Root {
    void *map;
    uint64_t transactions; // committed so far
    uint64_t attempts;     // to commit that were stamped
    uint64_t *stamp;       // STAMP_WORDS times `attempts`, or NULL
    void *blobs[BLOBS];
    uint64_t blob_bytes[BLOBS];
    uint64_t blob_seeds[BLOBS];
};

struct Operation;

class Workload
{
  public:
    Workload(const map_ops &structure, const Profile &profile, uint64_t seed);

    // Run transaction `number`, from 0, without the commit; `pause` is called now and then.
    void run(pm_container *c, uint64_t number, const std::function<void()> &pause) const;

    // Makes what is going to be committed another thing, all over a record of several parts: so
    // that a record that was put together from two attempts to write it is not the same as either.
    static void stamp(pm_container *c);
    // How many transactions the container has seen.
    static uint64_t transactions(pm_container *c);
    // What differs from the state after so many; empty if nothing.
    std::string compare(pm_container *c, uint64_t transactions);

  private:
    // Words [first, end) hold seed, seed + 1, ...
    struct Edit {
        uint64_t first, end, seed;
    };
    struct Blob {
        uint64_t bytes, seed;
        std::vector<Edit> edits; // since it was made
    };
    struct State {
        std::map<uint64_t, uint64_t> pairs;
        Blob blobs[BLOBS] = {};
    };

    std::vector<Operation> operations(uint64_t number) const;
    void perform(pm_container *c, const Operation &operation,
                 const std::function<void()> &pause) const;
    static void perform(State &state, const Operation &operation);
    void begin(pm_container *c) const;
    const State &state(uint64_t transactions);
    static Edit edit_of(const Operation &operation, uint64_t bytes);
    static std::vector<uint64_t> contents(const Blob &blob);

    const map_ops &ops_;
    const Profile profile_;
    uint64_t seed_;
    std::vector<State> states_; // after 0, 1, ... transactions
};

} // namespace simulation

#endif
