// Each use costs one lock of a sixteenth of the cache, and constant time.
#include "lsm/cache.hpp"

namespace lsm
{

std::optional<Block> BlockCache::get(uint64_t table, uint64_t offset)
{
    const Place place{table, offset};
    Part &part = part_of(place);
    std::lock_guard guard(part.lock);
    auto found = part.at.find(place);
    if (found == part.at.end())
        return {};
    part.entries.splice(part.entries.begin(), part.entries, found->second);
    return found->second->block;
}

void BlockCache::put(uint64_t table, uint64_t offset, Block block)
{
    const Place place{table, offset};
    Part &part = part_of(place);
    std::lock_guard guard(part.lock);
    if (block.text.size() > room_ || part.at.contains(place))
        return;
    part.bytes += block.text.size();
    part.entries.push_front({place, std::move(block)});
    part.at[place] = part.entries.begin();
    while (part.bytes > room_) {
        Entry &oldest = part.entries.back();
        part.bytes -= oldest.block.text.size();
        part.at.erase(oldest.place);
        part.entries.pop_back();
    }
}

} // namespace lsm
