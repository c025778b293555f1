/* Our LSM store. */
#include "lsm/peer.h"

#include <lsm/lsm.hpp>

namespace bench
{
namespace
{

class OurPeer : public Peer
{
  public:
    explicit OurPeer(const PeerOptions &o)
        : store_(lsm::Store::open(o.db, {.create = true,
                                         .memtable_bytes = o.write_buffer_size,
                                         .cache_bytes = o.cache_size,
                                         .bloom_bits = static_cast<unsigned>(o.bloom_bits),
                                         .memtables = *lsm::memtables_of(o.memtables),
                                         .persistent_bytes = o.persistent_bytes,
                                         .engine = o.engine == "log" ? PM_ENGINE_LOG : PM_ENGINE_REDO,
                                         .container = o.container,
                                         .fast_directory = o.fast_directory,
                                         .fast_levels = o.fast_levels,
                                         .read_workers = o.read_workers}))
    {
    }

    void put(std::string_view key, std::string_view value, bool sync) override
    {
        store_->put(key, value, {.sync = sync});
    }

    void remove(std::string_view key) override { store_->remove(key); }

    bool get(std::string_view key, std::string &value) override
    {
        auto found = store_->get(key);
        if (found)
            value = std::move(*found);
        return found.has_value();
    }

    uint64_t scan(std::string_view key, uint64_t count) override
    {
        auto at = store_->iterator();
        uint64_t n = 0;
        for (at->seek(key); at->valid() && n < count; at->next(), n++)
            at->value();
        return n;
    }

    uint64_t log_bytes() override { return std::stoull(*store_->property("container_log")); }

    double merging_seconds() override { return std::stod(*store_->property("merging")) * 1e-6; }

  private:
    std::unique_ptr<lsm::Store> store_;
};

} // namespace

std::unique_ptr<Peer> Peer::open(const PeerOptions &options)
{
    return std::make_unique<OurPeer>(options);
}

const char *Peer::name()
{
    return "lsm";
}

} // namespace bench
