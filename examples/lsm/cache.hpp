// Blocks that were read lately, up to a number of bytes: the one used longest ago goes first. Thread-safe.
#ifndef EXAMPLES_LSM_CACHE_HPP
#define EXAMPLES_LSM_CACHE_HPP

#include "lsm/block.hpp"

#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace lsm
{

class BlockCache
{
  public:
    explicit BlockCache(size_t bytes) : room_(bytes / parts) {}

    std::optional<Block> get(uint64_t table, uint64_t offset);
    void put(uint64_t table, uint64_t offset, Block block);

  private:
    static constexpr size_t parts = 16; // each with its own lock

    struct Place {
        uint64_t table, offset;
        bool operator==(const Place &) const = default;
    };
    struct Hash {
        size_t operator()(const Place &p) const
        {
            return (p.table * 0x9e3779b97f4a7c15 + p.offset) * 0x9e3779b97f4a7c15 >> 20;
        }
    };
    struct Entry {
        Place place;
        Block block;
    };
    struct Part {
        std::mutex lock;
        std::list<Entry> entries; // the newest use first
        std::unordered_map<Place, std::list<Entry>::iterator, Hash> at;
        size_t bytes = 0;
    };

    Part &part_of(const Place &place) { return parts_[Hash()(place) % parts]; }

    size_t room_;
    Part parts_[parts];
};

} // namespace lsm

#endif
