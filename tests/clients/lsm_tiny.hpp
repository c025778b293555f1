// Shared by the tests of the LSM store: options for a store with tiny memtables and tables, which uses all
// levels, and a map to compare a store with.
#ifndef TESTS_CLIENTS_LSM_TINY_HPP
#define TESTS_CLIENTS_LSM_TINY_HPP

#include "common/fixture.hpp"

#include "lsm/lsm.hpp"

#include <map>
#include <random>
#include <sstream>

using lsm::Memtables;

inline const std::vector<Memtables> all_modes = {Memtables::dram,
                                                 Memtables::immutable_persistent,
                                                 Memtables::mutable_persistent,
                                                 Memtables::persistent_only,
                                                 Memtables::merging,
                                                 Memtables::key_lsm};

inline lsm::Options tiny(Memtables mode = Memtables::dram)
{
    lsm::Options options;
    options.create = true;
    options.memtable_bytes = 256 << 10;
    options.table_bytes = 32 << 10;
    options.level_bytes = 64 << 10;
    options.block_bytes = 512;
    options.cache_bytes = 64 << 10;
    options.memtables = mode;
    options.persistent_bytes = 512 << 10;
    options.container_bytes = 1 << 30;
    options.engine = test::engine_option();
    return options;
}

inline std::string key_of(uint64_t i)
{
    std::string key = std::to_string(i);
    return i % 16 == 0 ? "" + key.substr(0, i % 5) : "key" + key; // also the empty key
}

using Model = std::map<std::string, std::string>;

inline void compare(lsm::Store &store, const Model &model, const lsm::Snapshot *snapshot = nullptr)
{
    auto at = store.iterator(snapshot);
    at->seek_to_first();
    for (const auto &[key, value] : model) {
        REQUIRE(at->valid());
        REQUIRE(at->key() == key);
        REQUIRE(at->value() == value);
        at->next();
    }
    REQUIRE_FALSE(at->valid());
    at->seek_to_last();
    for (auto expected = model.rbegin(); expected != model.rend(); ++expected, at->prev())
        REQUIRE((at->valid() && at->key() == expected->first && at->value() == expected->second));
    REQUIRE_FALSE(at->valid());
}

// Random writes and deletions, the same for the same `seed`.
inline void churn(lsm::Store &store, Model &model, unsigned seed, uint64_t count)
{
    std::mt19937_64 random(seed);
    for (uint64_t i = 0; i < count; i++) {
        const std::string key = key_of(random() % 2000);
        const std::string value = std::to_string(seed) + std::string(random() % 1000, 'v');
        if (random() % 5 == 0) {
            store.remove(key);
            model.erase(key);
        } else {
            store.put(key, value);
            model[key] = value;
        }
    }
}

inline unsigned levels_in_use(lsm::Store &store)
{
    std::istringstream lines(*store.property("levels"));
    unsigned level, files, bytes, used = 0;
    while (lines >> level >> files >> bytes)
        used += files > 0;
    return used;
}

#endif
