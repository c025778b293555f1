// What a store remembers in ordinary memory: values read lately, and where displaced keys are.
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

/// The best `bits` bits of a hash by FNV-1a, whose highest ones the end of a key hardly reaches.
constexpr size_t best_bits(uint64_t hash, unsigned bits)
{
    return hash * 0x9e3779b97f4a7c15 >> (64 - bits);
}

/// Values of the keys read last (LRU), up to a number of bytes. In 16 parts with a lock each; a
/// reader that finds one taken passes the cache by, so that reading never waits.
///
/// A change drops its keys before it becomes visible, and tells its sequence; a value that was read
/// from an older snapshot is then not taken any more. So the cache never holds a value that a new
/// snapshot would not show.
class ReadCache
{
  public:
    explicit ReadCache(size_t bytes) : part_bytes_(bytes / parts) {}

    /// Copies the value; false if it is not here, or somebody else is.
    bool get(uint64_t hash, std::string_view key, std::string &value);
    /// The value is of a snapshot of `sequence`.
    void fill(uint64_t hash, std::string_view key, std::string_view value, uint64_t sequence);
    /// Change `sequence` is about to change the key.
    void drop(uint64_t hash, std::string_view key, uint64_t sequence);

    uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
    uint64_t misses() const { return misses_.load(std::memory_order_relaxed); }

  private:
    static constexpr size_t parts = 16;
    static constexpr size_t entry_overhead = 150; // bytes, of list, table and allocator

    struct Entry {
        std::string key, value;
        size_t bytes() const { return key.size() + value.size() + entry_overhead; }
    };
    struct alignas(64) Part {
        std::mutex lock;
        std::list<Entry> entries; // the last one used first
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

/// At which of its places a displaced key was found last: a hint, by the key's hash, that saves
/// looking at the places before. 4096 of them, a later one in the place of an earlier one.
class CollisionCache
{
  public:
    /// 0 if nothing is known.
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
