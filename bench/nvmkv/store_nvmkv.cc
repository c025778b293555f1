#include "nvmkv/store.h"

#include "harness/random.h"

#include <nvmkv/nvmkv.hpp>

#include <vector>

namespace bench
{
namespace
{

/** Bytes: those that libpm logged, and 64 for each line that it wrote back; as it counts them. */
Traffic traffic_of(nvmkv::Ftl &ftl)
{
    struct pm_stats stats{};
    stats.size = sizeof stats;
    if (pm_stats(ftl.container(), &stats) != 0)
        throw pm::error();
    const nvmkv::Counters io = ftl.counters();
    return {io.writes, stats.bytes_logged + 64 * stats.lines_flushed, stats.fences, io.reads,
            io.bytes_read};
}

nvmkv::Durability durability(const StoreOptions &options)
{
    return options.sync ? nvmkv::Durability::sync : nvmkv::Durability::async;
}

class Nvmkv : public KeyValueStore
{
  public:
    explicit Nvmkv(const StoreOptions &options) : store_(open(options))
    {
        for (size_t i = 1; i < options.instances; i++)
            pools_.push_back(store_.create_pool("pool" + std::to_string(i)));
    }

    void put(size_t instance, uint64_t key, std::string_view value) override
    {
        store_.put(KeyText(key), value, pools_[instance]);
    }
    bool get(size_t instance, uint64_t key, std::string &value) override
    {
        return store_.get(KeyText(key), value, pools_[instance]);
    }
    Traffic traffic() override { return traffic_of(store_.ftl()); }

  private:
    static nvmkv::Store open(const StoreOptions &options)
    {
        nvmkv::Options ours;
        ours.durability = durability(options);
        ours.cache_bytes = options.cache_bytes;
        ours.collision_cache = options.collision_cache;
        ours.key_bits = options.key_bits;
        ours.create_if_missing = true;
        return nvmkv::Store::open(options.directory + "/store.kv", ours);
    }

    nvmkv::Store store_;
    std::vector<nvmkv::Pool> pools_ = {nvmkv::default_pool};
};

class Ftl : public KeyValueStore
{
  public:
    explicit Ftl(const StoreOptions &options)
        : ftl_(options.directory + "/disk.pm",
               {.flags = PM_CREATE, .durability = durability(options)})
    {
    }

    void put(size_t, uint64_t key, std::string_view value) override
    {
        ftl_.write(sector_of(key), value);
    }
    bool get(size_t, uint64_t key, std::string &value) override
    {
        value.resize(1024);
        ftl_.read(sector_of(key), value);
        return true;
    }
    Traffic traffic() override { return traffic_of(ftl_); }

  private:
    /** As far apart as the pairs of a store. */
    static uint64_t sector_of(uint64_t key) { return scramble(key) >> 28 << 12; }

    nvmkv::Ftl ftl_;
};

} // namespace

KeyText::KeyText(uint64_t key)
{
    const uint64_t bits = scramble(key + 1);
    for (size_t i = 0; i < key_size; i++)
        text_[i] = "0123456789abcdef"[bits >> (4 * i) & 15];
}

std::unique_ptr<KeyValueStore> make_nvmkv(const StoreOptions &options)
{
    return std::make_unique<Nvmkv>(options);
}

std::unique_ptr<KeyValueStore> make_ftl(const StoreOptions &options)
{
    return std::make_unique<Ftl>(options);
}

} // namespace bench
