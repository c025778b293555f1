// The workload that workers run and that the judge replays on a model: an endless sequence of
// transactions, each a function of the seed and its number alone.
#ifndef TESTS_CRASH_WORKLOAD_HPP
#define TESTS_CRASH_WORKLOAD_HPP

#include <common/map.h>

#include <cstdint>
#include <map>
#include <string>

namespace crash
{

// What the root of the container holds.
struct Root {
    void *map;
    uint64_t transactions; // committed so far
    void *blobs[64];       // large and small objects that come and go; owned; NULL: none
    uint64_t blob_bytes[64];
};

// Operations in a transaction: 100 to 400.
constexpr unsigned OPERATIONS_MIN = 100, OPERATIONS_MAX = 400;

// Transactions of the sequence that a worker in mode `large` makes one of: its record runs over
// several segments of the log.
constexpr unsigned LARGE_TRANSACTIONS = 8;

// Commits that a worker in mode `async` waits for together.
constexpr unsigned ASYNC_COMMITS = 4;

// The state after any number of transactions.
class Model
{
  public:
    explicit Model(uint64_t seed) : seed_(seed) {}
    void advance_to(uint64_t transactions);
    // What differs between the container and the model; empty if nothing.
    std::string compare(const map_ops &ops, const Root &root) const;

  private:
    uint64_t seed_;
    uint64_t transactions_ = 0;
    std::map<uint64_t, uint64_t> pairs_;
    std::map<unsigned, std::pair<uint64_t, uint64_t>> blobs_; // slot: bytes, seed of the contents
};

// Run transaction number `number` (from 0) in the container, without the commit.
void run_transaction(const map_ops &ops, pm_container *c, Root *root, uint64_t seed,
                     uint64_t number);

const map_ops &ops_by_name(const std::string &name);

} // namespace crash

#endif
