// The implementation of Store, for the files that are its parts. The numbers that they cite are those
// of the invariants in nvmkv.hpp.
#ifndef EXAMPLES_NVMKV_STORE_HPP
#define EXAMPLES_NVMKV_STORE_HPP

#include "nvmkv/cache.hpp"
#include "nvmkv/change.hpp"
#include "nvmkv/nvmkv.hpp"
#include "nvmkv/places.hpp"
#include "nvmkv/pools.hpp"

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace nvmkv
{

struct Store::Impl {
    Impl(std::unique_ptr<Ftl> opened, unsigned key_bits, unsigned value_bits, const Options &o)
        : options(o), ftl(std::move(opened)), places(key_bits, value_bits),
          pools(*ftl, places.pools_max())
    {
        if (options.cache_bytes)
            cache = std::make_unique<ReadCache>(options.cache_bytes);
        if (!options.readonly)
            reaper = std::jthread([this](std::stop_token stop) { reap(stop); });
    }

    uint64_t hash_of(Pool pool, std::string_view key) const;
    void require_pool(Pool pool) const;
    std::optional<PairView> find(Ftl::Snapshot &, Pool, uint64_t hash, std::string_view key);
    bool get(std::string_view key, std::string &value, Pool pool);
    Ftl::Ticket put(std::span<const KeyValue> pairs, Pool pool);
    std::optional<Ftl::Ticket> erase(std::span<const std::string_view> keys, Pool, size_t &erased);
    Ftl::Ticket submit(Change &change);
    void drop(uint64_t hash, Pool pool, std::string_view key);
    void walk(uint64_t from, const std::function<bool(const Extent &)> &visit) const;
    void clear_regions(const std::stop_token &stop,
                       const std::function<bool(const Extent &)> &take);
    void reap(const std::stop_token &stop);
    void finish_deletion(const std::stop_token &stop, Pool pool);
    void check_region(Ftl::Snapshot &snapshot, const Extent &extent) const;

    Options options;
    std::unique_ptr<Ftl> ftl;
    Places places;
    Pools pools;
    std::unique_ptr<ReadCache> cache; // NULL: no cache
    CollisionCache collisions;

    std::mutex writing;                 // held while the store or the pools change
    std::condition_variable_any doomed; // with `writing`: a pool shall be deleted, or was deleted
    std::exception_ptr reaper_failure;
    std::jthread reaper; // the last member, so that the thread ends before the others go
};

} // namespace nvmkv

#endif
