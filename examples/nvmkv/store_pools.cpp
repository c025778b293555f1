// The pools of a store, and the background thread that frees the pairs of deleted pools.
#include "nvmkv/store.hpp"

#include <algorithm>
#include <cerrno>
#include <map>

namespace nvmkv
{

Pool Store::create_pool(std::string_view name)
{
    Impl &s = *impl_;
    if (name.empty() || name.size() > pool_name_max || name.find('\0') != name.npos)
        fail(EINVAL, s.ftl->path() + ": a pool's name has 1 to 63 bytes, none of them zero");
    std::unique_lock lock(s.writing);
    if (s.pools.find(name))
        fail(EEXIST, s.ftl->path() + ": there is a pool " + std::string(name) + " already");
    auto pool = s.pools.free_number();
    if (!pool)
        fail(EMFILE, s.ftl->path() + ": all " + std::to_string(s.places.pools_max()) +
                         " pools are taken; delete one and wait until it is cleared away, or "
                         "create a store with more value bits");
    Ftl::Ticket ticket = s.pools.create(*pool, name);
    lock.unlock();
    s.ftl->wait(ticket);
    return *pool;
}

bool Store::pool_exists(Pool pool) const
{
    return impl_->pools.live(pool);
}

std::optional<Pool> Store::find_pool(std::string_view name)
{
    std::scoped_lock lock(impl_->writing);
    return impl_->pools.find(name);
}

void Store::delete_pool(Pool pool)
{
    Impl &s = *impl_;
    if (pool == default_pool)
        fail(EINVAL, s.ftl->path() + ": the default pool cannot be deleted");
    std::unique_lock lock(s.writing);
    s.require_pool(pool);
    Ftl::Ticket ticket = s.pools.doom(pool);
    lock.unlock();
    s.ftl->wait(ticket);
    s.doomed.notify_all();
}

void Store::wait_for_deletions()
{
    std::unique_lock lock(impl_->writing);
    impl_->doomed.wait(lock, [this] {
        return impl_->pools.doomed().empty() || impl_->reaper_failure || impl_->options.readonly;
    });
    if (impl_->reaper_failure)
        std::rethrow_exception(impl_->reaper_failure);
}

void Store::Impl::finish_deletion(const std::stop_token &stop, Pool pool)
{
    clear_regions(stop,
                  [&](const Extent &extent) { return places.offset_of(extent.first) == pool; });
    if (stop.stop_requested())
        return;
    std::unique_lock lock(writing);
    Ftl::Ticket ticket = pools.forget(pool);
    lock.unlock();
    ftl->wait(ticket);
}

// The background thread: frees the pairs of deleted pools.
void Store::Impl::reap(const std::stop_token &stop)
{
    std::unique_lock lock(writing);
    auto something = [this] { return !pools.doomed().empty(); };
    while (doomed.wait(lock, stop, something) && !stop.stop_requested()) {
        const Pool pool = pools.doomed().front();
        lock.unlock();
        try {
            finish_deletion(stop, pool);
        } catch (...) { // the rest is done when the store is opened again
            lock.lock();
            reaper_failure = std::current_exception();
            doomed.notify_all();
            return;
        }
        lock.lock();
        doomed.notify_all();
    }
}

PoolInfo Store::pool_info(Pool pool)
{
    for (const PoolInfo &info : pools())
        if (info.pool == pool)
            return info;
    impl_->require_pool(pool);
    return {pool, "", 0, 0};
}

std::vector<PoolInfo> Store::pools()
{
    Impl &s = *impl_;
    std::map<Pool, PoolInfo> infos = {{default_pool, {default_pool, "", 0, 0}}};
    {
        std::scoped_lock lock(s.writing);
        for (const auto &[name, pool] : s.pools.names())
            infos[pool] = {pool, name, 0, 0};
    }
    s.walk(s.places.region_sectors(), [&](const Extent &extent) {
        auto info = infos.find(static_cast<Pool>(s.places.offset_of(extent.first)));
        if (info != infos.end()) {
            info->second.pairs++;
            info->second.sectors += extent.count;
        }
        return true;
    });
    std::vector<PoolInfo> all;
    for (const auto &[pool, info] : infos)
        all.push_back(info);
    return all;
}

} // namespace nvmkv
