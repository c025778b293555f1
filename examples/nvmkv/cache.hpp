// The caches of a store, in ordinary memory: values read lately, and the places of displaced keys.
#ifndef EXAMPLES_NVMKV_CACHE_HPP
#define EXAMPLES_NVMKV_CACHE_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace nvmkv
{

/// The best `bits` bits of a hash by FNV-1a. The end of a key hardly changes the highest bits of FNV-1a.
constexpr size_t best_bits(uint64_t hash, unsigned bits)
{
    return hash * 0x9e3779b97f4a7c15 >> (64 - bits);
}

/// Values of the keys read last (LRU), up to a number of bytes. The cache has 16 parts, each with a lock. If
/// a lock is taken, a reader does without the cache, so that reading never waits.
///
/// Before a change becomes visible, it drops its keys and leaves its sequence. After that the cache accepts
/// no value from an older snapshot. So the cache never has a value that a new snapshot would not show.
class ReadCache
{
  public:
    explicit ReadCache(size_t bytes) : part_bytes_(bytes / parts) {}

    /// Copies the value. False if the value is not in the cache, or if another thread has the lock.
    bool get(uint64_t hash, std::string_view key, std::string &value);
    /// Add a value that was read from a snapshot of `sequence`.
    void fill(uint64_t hash, std::string_view key, std::string_view value, uint64_t sequence);
    /// Drop a key that change `sequence` is about to change.
    void drop(uint64_t hash, std::string_view key, uint64_t sequence);

    uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
    uint64_t misses() const { return misses_.load(std::memory_order_relaxed); }

  private:
    static constexpr size_t parts = 16;
    static constexpr size_t entry_overhead = 150; // bytes, for list, table and allocator

    struct Entry {
        std::string key, value;
        size_t bytes() const { return key.size() + value.size() + entry_overhead; }
    };
    struct alignas(64) Part {
        std::mutex lock;
        std::list<Entry> entries; // the most recently used first
        std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key;
        size_t bytes = 0;
        uint64_t changed = 0; // the newest change that dropped something

        void erase(std::list<Entry>::iterator entry);
    };
    Part &part_of(uint64_t hash) { return parts_[best_bits(hash, 4)]; }

    size_t part_bytes_;
    std::array<Part, parts> parts_;
    std::atomic<uint64_t> hits_{0}, misses_{0};
};

/// Remembers, by the key's hash, the place where a displaced key was found last. It is a hint, which saves
/// reads of the earlier places. There are 4096 hints. A later hint may replace an earlier one.
class CollisionCache
{
  public:
    /// The number of the place, or 0 if there is no hint.
    unsigned probe_of(uint64_t hash) const
    {
        const uint64_t word = word_of(hash).load(std::memory_order_relaxed);
        return (word ^ hash) & ~probe_bits ? 0 : word & probe_bits;
    }
    void remember(uint64_t hash, unsigned probe)
    {
        word_of(hash).store((hash & ~probe_bits) | probe, std::memory_order_relaxed);
    }

  private:
    static constexpr uint64_t probe_bits = 7;

    std::atomic<uint64_t> &word_of(uint64_t hash) { return words_[best_bits(hash, 12)]; }
    const std::atomic<uint64_t> &word_of(uint64_t hash) const
    {
        return words_[best_bits(hash, 12)];
    }

    std::array<std::atomic<uint64_t>, 4096> words_{};
};

} // namespace nvmkv

#endif
