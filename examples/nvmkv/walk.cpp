// Walks over the pairs of a store, for readers and for deletion.
#include "nvmkv/store.hpp"

#include <cerrno>
#include <vector>

namespace nvmkv
{
namespace
{

// A walk passes at most `steps_at_once` extents in one snapshot, since no retired object is freed while a
// snapshot is held. `regions_at_once` regions are cleared in one change.
constexpr size_t steps_at_once = 4096, regions_at_once = 64;

} // namespace

// Calls visit(extent) for the extents that begin at or after `from`, until visit() returns false.
void Store::Impl::walk(uint64_t from, const std::function<bool(const Extent &)> &visit) const
{
    for (;;) {
        Ftl::Snapshot snapshot = ftl->snapshot();
        for (size_t i = 0; i < steps_at_once; i++) {
            auto extent = snapshot.at_or_after(from);
            if (!extent || !visit(*extent))
                return;
            from = extent->end();
        }
    }
}

// Clear all regions whose extent satisfies take(extent), some at a time. Region 0 stays.
void Store::Impl::clear_regions(const std::stop_token &stop,
                                const std::function<bool(const Extent &)> &take)
{
    for (uint64_t position = places.region_sectors(); position < places.end();) {
        std::vector<uint64_t> regions;
        uint64_t next = places.end();
        walk(position, [&](const Extent &extent) {
            const uint64_t region = places.region_of(extent.first);
            if (take(extent))
                regions.push_back(region);
            if (regions.size() < regions_at_once && !stop.stop_requested())
                return true;
            next = places.range(region).end();
            return false;
        });
        position = next;
        if (stop.stop_requested())
            return;
        std::unique_lock lock(writing);
        Change change(places, ftl->latest());
        bool changes = false;
        for (uint64_t region : regions) {
            Ftl::Snapshot latest = ftl->latest();
            auto extent = latest.at_or_after(places.range(region).first);
            if (!extent || places.region_of(extent->first) != region || !take(*extent))
                continue; // the region has changed meanwhile
            if (auto pair = pair_in(latest, places, region))
                drop(pair->header.hash, pair->header.pool, pair->key);
            change.clear(region);
            changes = true;
        }
        if (!changes)
            continue;
        Ftl::Ticket ticket = submit(change);
        lock.unlock();
        ftl->wait(ticket);
    }
}

void Store::erase_all()
{
    Impl &s = *impl_;
    s.clear_regions({}, [&](const Extent &extent) {
        return s.places.offset_of(extent.first) != s.places.tombstone_offset();
    });
    // When no pair is left that a search could find behind them, tombstones are needless.
    std::scoped_lock lock(s.writing);
    {
        Ftl::Snapshot latest = s.ftl->latest(); // pairs on their way to the medium count
        uint64_t from = s.places.region_sectors();
        while (auto extent = latest.at_or_after(from)) {
            if (s.places.offset_of(extent->first) != s.places.tombstone_offset())
                return;
            from = extent->end();
        }
    }
    s.ftl->ptrim({s.places.region_sectors(), s.places.end() - s.places.region_sectors()});
}

// ---- Walking

Store::Iterator::Iterator(const Impl &store, std::optional<Pool> pool)
    : store_(&store), pool_(pool), position_(store.places.region_sectors())
{
    if (pool) {
        store.require_pool(*pool);
        generation_ = store.pools.generation(*pool);
    }
}

Store::Iterator Store::begin()
{
    return {*impl_, std::nullopt};
}

Store::Iterator Store::begin(Pool pool)
{
    return {*impl_, pool};
}

bool Store::Iterator::next()
{
    const Impl &s = *store_;
    current_ = 0;
    s.walk(position_, [&](const Extent &extent) {
        position_ = s.places.range(s.places.region_of(extent.first)).end();
        const uint64_t offset = s.places.offset_of(extent.first); // (2)
        if (pool_ ? offset == *pool_ : s.pools.live(static_cast<Pool>(offset)))
            current_ = extent.first;
        return current_ == 0;
    });
    if (pool_ && s.pools.generation(*pool_) != generation_)
        fail(ENOENT, s.ftl->path() + ": pool " + std::to_string(*pool_) + " has been deleted");
    return current_ != 0;
}

std::optional<Store::Iterator::Pair> Store::Iterator::get_current()
{
    const Impl &s = *store_;
    Ftl::Snapshot snapshot = s.ftl->snapshot();
    auto extent = current_ ? snapshot.at_or_after(current_) : std::nullopt;
    if (!extent || extent->first != current_)
        return std::nullopt;
    const PairView pair = pair_of(snapshot, *extent);
    if (pool_ ? s.pools.generation(*pool_) != generation_ : !s.pools.live(pair.header.pool))
        return std::nullopt;
    return Pair{pair.header.pool, std::string(pair.key), std::string(pair.value)};
}

} // namespace nvmkv
