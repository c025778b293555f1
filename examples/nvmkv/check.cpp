// Information about a store, and the check of its invariants.
#include "nvmkv/store.hpp"

#include <algorithm>
#include <stdexcept>

namespace nvmkv
{

void Store::flush()
{
    impl_->ftl->flush();
}

Ftl &Store::ftl()
{
    return *impl_->ftl;
}

StoreInfo Store::info() const
{
    const Impl &s = *impl_;
    struct pm_stats stats{};
    stats.size = sizeof stats;
    if (pm_stats(s.ftl->container(), &stats) != 0)
        throw pm::error();
    return {s.places.key_bits(),
            s.places.value_bits(),
            s.places.value_max(),
            s.places.pools_max(),
            stats.file_bytes,
            s.ftl->counters(),
            s.cache ? s.cache->hits() : 0,
            s.cache ? s.cache->misses() : 0};
}

void Store::Impl::check_region(Ftl::Snapshot &snapshot, const Extent &extent) const
{
    const uint64_t region = places.region_of(extent.first), offset = places.offset_of(extent.first);
    auto require = [&](bool holds, const char *what) {
        if (!holds)
            throw std::runtime_error(ftl->path() + ": sector " + std::to_string(extent.first) +
                                     ": " + what);
    };
    PairView pair;
    require(parse_pair(snapshot.read(extent), pair), "this is no pair");
    require(extent.end() < places.range(region).end(), "a pair reaches to the end of its region");
    if (pair.tombstone()) {
        require(offset == places.tombstone_offset() && pair.passed(), "a tombstone out of place");
        return;
    }
    const Pool pool = pair.header.pool;
    require(offset == pool, "a pair begins at another pool's sector");
    require(pools.live(pool) || std::ranges::find(pools.doomed(), pool) != pools.doomed().end(),
            "a pair of no pool");
    require(!pair.key.empty() && pair.header.hash == Places::hash(pool, pair.key), "a wrong hash");
    for (unsigned probe = 0;; probe++) { // (3)
        require(probe < probes_max, "this is no place of the key");
        if (places.region(pair.header.hash, probe) == region)
            break;
        auto before = pair_in(snapshot, places, places.region(pair.header.hash, probe));
        require(before && before->passed(), "the pair cannot be found from its first place");
        require(!before->is(pool, pair.header.hash, pair.key), "a key that is there twice");
    }
}

void Store::check()
{
    Impl &s = *impl_;
    std::scoped_lock lock(s.writing);
    s.ftl->check();
    Ftl::Snapshot snapshot = s.ftl->latest();
    uint64_t region = 0; // of the extent before
    uint64_t from = s.places.region_sectors();
    while (auto extent = snapshot.at_or_after(from)) {
        if (s.places.region_of(extent->first) == region)
            throw std::runtime_error(s.ftl->path() + ": two pairs in one region");
        region = s.places.region_of(extent->first);
        s.check_region(snapshot, *extent);
        from = extent->end();
    }
}

} // namespace nvmkv
