#include "nvmkv/cache.hpp"

#include <algorithm>

namespace nvmkv
{

void ReadCache::Part::erase(std::list<Entry>::iterator entry)
{
    bytes -= entry->bytes();
    by_key.erase(entry->key);
    entries.erase(entry);
}

bool ReadCache::get(uint64_t hash, std::string_view key, std::string &value)
{
    Part &part = part_of(hash);
    std::unique_lock lock(part.lock, std::try_to_lock);
    if (lock) {
        auto found = part.by_key.find(key);
        if (found != part.by_key.end()) {
            part.entries.splice(part.entries.begin(), part.entries, found->second);
            value = found->second->value;
            hits_.fetch_add(1, std::memory_order_relaxed);
            return true;
        }
    }
    misses_.fetch_add(1, std::memory_order_relaxed);
    return false;
}

void ReadCache::fill(uint64_t hash, std::string_view key, std::string_view value, uint64_t sequence)
{
    Part &part = part_of(hash);
    std::unique_lock lock(part.lock, std::try_to_lock);
    if (!lock || part.changed > sequence || part.by_key.contains(key))
        return;
    Entry entry{std::string(key), std::string(value)};
    if (entry.bytes() > part_bytes_)
        return;
    part.bytes += entry.bytes();
    part.entries.push_front(std::move(entry));
    part.by_key.emplace(part.entries.front().key, part.entries.begin());
    while (part.bytes > part_bytes_)
        part.erase(std::prev(part.entries.end()));
}

void ReadCache::drop(uint64_t hash, std::string_view key, uint64_t sequence)
{
    Part &part = part_of(hash);
    std::scoped_lock lock(part.lock);
    part.changed = std::max(part.changed, sequence);
    if (auto found = part.by_key.find(key); found != part.by_key.end())
        part.erase(found->second);
}

} // namespace nvmkv
