// NVMKV: a key-value store that leaves the work to the layer below (Marmol, FIU 2017, chapter 4).
//
// The store has no index. It hashes a key to a place in a sparse address space (ftl.hpp), and writes the
// pair there. So a get is one read, and a put is one write. Other stores need a log, a tree and compaction
// of their own; here the layer below does their work anyway.
//
//     auto store = nvmkv::Store::create("store.kv");
//     store.put("apple", "red");
//     std::optional<std::string> colour = store.get("apple");
//
// Places. The address space is cut into 2^key_bits *regions* of 2^value_bits sectors. The invariants,
// which nvmkv.cpp cites:
//
//   1. Region 0 describes the store: sector 0 the options of its creation, sector p the pool p.
//   2. A pair begins in its region at the sector that is its pool's number. So a walk over one pool reads
//      no other pool's pairs. Half of the region, less one sector, is for pools, and half for values. So
//      two pairs are never adjacent, and each is a mapped range of its own.
//   3. A key has eight places, by polynomial probing from the hash (FNV-1a) of pool and key. A pair is at
//      the first place that was free. The places before have pairs with the flag *passed*, or tombstones.
//      A search ends at an empty region, or at a pair without this flag.
//   4. A pair never moves. All changes of a call are one change of the address space.
//
// Crashes. After a crash a pair is as the last acknowledged call left it, or as the call under way would
// have left it. It is never torn. This holds for each pair of a batch by itself, or, on request, for the
// batch as a whole.
//
// Threads. Every thread may call everything. A get never waits for a put, a batch or a deletion. It waits
// while a failed change is rolled back, and when 64 threads read at once. A get sees every acknowledged
// put, and no put that could still be rolled back.
//
// Durability is as in ftl.hpp. Failures throw std::system_error, or pm::error, which derives from it. The
// code is an errno, and what() tells the user how to go on. A call that failed has changed nothing, but see
// the batches. EROFS, EIO and ENOSPC come from the layer below.
#ifndef EXAMPLES_NVMKV_NVMKV_HPP
#define EXAMPLES_NVMKV_NVMKV_HPP

#include "nvmkv/ftl.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nvmkv
{

using Pool = uint32_t;
constexpr Pool default_pool = 0;     // always there
constexpr size_t pool_name_max = 63; // bytes

struct KeyValue {
    std::string_view key, value;
};

struct Options {
    Durability durability = Durability::sync;
    size_t cache_bytes = 0;         // of the read cache; 0: none
    bool collision_cache = true;    // remember keys that are not at their first place
    bool readonly = false;          // any number of processes may open it so, while none writes
    bool create_if_missing = false; // for open()
    // The rest is for creation. The store records it.
    unsigned key_bits = 36;    // 5 or more: at most 2^key_bits pairs, and far fewer for speed
    unsigned value_bits = 12;  // 2 to 20: values of up to 2^value_bits / 2 * 512 bytes (1 MiB)
    uint64_t max_size = 0;     // of the file, as in pm_options
    uint64_t segment_size = 0; // of the container, as in pm_options
    pm_engine engine = PM_ENGINE_AUTO; // of the container: redo, the default, or log
};

struct PoolInfo {
    Pool pool;
    std::string name; // "" for the default pool
    uint64_t pairs, sectors;
};

struct StoreInfo {
    unsigned key_bits, value_bits;
    size_t value_max;    // bytes
    Pool pools_max;      // with the default pool
    uint64_t file_bytes; // size of the container
    Counters io;         // of the layer below
    uint64_t cache_hits, cache_misses;
};

class Store
{
    struct Impl;

  public:
    /// Create a store. EEXIST if there is one; EINVAL for bits out of range, or more than 48 together. A
    /// crash leaves no store, or an empty store, or an *unfinished* one. An unfinished store counts as
    /// none, for create() too.
    static Store create(const std::string &path, const Options &options = {});
    /// Open a store. ENOENT if there is none; ENODATA if it is unfinished; EBUSY if it is open elsewhere;
    /// EMEDIUMTYPE or EBADMSG if the file is no store. With create_if_missing, creates a store instead of
    /// failing with ENOENT or ENODATA.
    static Store open(const std::string &path, const Options &options = {});
    /// Delete the file. Fails like open(), so that only stores are deleted. An unfinished store is
    /// deleted, too.
    static void destroy(const std::string &path);
    Store(Store &&) noexcept;
    Store &operator=(Store &&) noexcept;
    /// Closes the store and makes everything durable. To learn of a failure, call flush() first. The
    /// deletion of pools goes on when the store is opened again.
    ~Store();

    // ---- Pairs. A key has 1 to 128 bytes, of any kind; else EINVAL. ENOENT: there is no such pool.

    /// Copies the value. False if there is no such key. One read, or none if the value is cached.
    bool get(std::string_view key, std::string &value, Pool pool = default_pool);
    std::optional<std::string> get(std::string_view key, Pool pool = default_pool);
    bool exists(std::string_view key, Pool pool = default_pool);
    /// Store the pair, or replace its value. EFBIG: the value is longer than value_max. EOVERFLOW: other
    /// keys have taken all places of the key, so create a store with more key_bits.
    void put(std::string_view key, std::string_view value, Pool pool = default_pool);
    /// Erase the pair. Returns whether it was there.
    bool erase(std::string_view key, Pool pool = default_pool);

    enum class Atomic { each, whole };

    /// Store many pairs. `each`: every pair is a change by itself, with one wait for all. If a pair fails,
    /// the pairs before it are stored. `whole`: all or none, also for readers. E2BIG: too many pairs for
    /// `whole`. It has 16384 places for old objects: replacing a pair takes 2, erasing 13, a new pair none.
    /// So it can replace 8192 pairs, or erase 1260.
    void put_batch(std::span<const KeyValue> pairs, Pool pool = default_pool,
                   Atomic atomic = Atomic::each);
    /// Get many values, all of one state. While others change the store, ask for some thousands of keys at
    /// a time. The store keeps the old state for a thousand changes. The next change waits for the end of
    /// the call, and fails with ETIMEDOUT after two seconds.
    std::vector<std::optional<std::string>> get_batch(std::span<const std::string_view> keys,
                                                      Pool pool = default_pool);
    /// Erase many pairs, as put_batch() stores them. Returns how many were there.
    size_t erase_batch(std::span<const std::string_view> keys, Pool pool = default_pool,
                       Atomic atomic = Atomic::each);
    /// Erase all pairs of all pools, pair by pair: after a crash some are left. The pools stay.
    void erase_all();

    // ---- Walking

    /// Walks over the pairs of one pool, or of all pools, in no useful order. While others change the
    /// store, the walk visits each pair once that is there all the time. If the Store object is moved, the
    /// iterator stays valid. It is invalid after the store is closed.
    class Iterator
    {
      public:
        struct Pair {
            Pool pool;
            std::string key, value;
        };

        /// Go to the first pair, then to the next. False if there is none. ENOENT: the pool has been
        /// deleted.
        bool next();
        /// The pair as it is now. Empty if the pair has been erased since.
        std::optional<Pair> get_current();

      private:
        friend class Store;
        Iterator(const Impl &store, std::optional<Pool> pool);

        const Impl *store_;
        std::optional<Pool> pool_;
        uint32_t generation_ = 0;
        uint64_t position_;    // regions before this sector are done
        uint64_t current_ = 0; // the sector where the pair begins; 0: none
    };
    Iterator begin(); // all pools
    Iterator begin(Pool pool);

    // ---- Pools

    /// Create a pool. EINVAL: the name is empty or has more than 63 bytes. EEXIST: another pool has this
    /// name. EMFILE: all numbers are taken; that of a deleted pool is free after wait_for_deletions().
    Pool create_pool(std::string_view name);
    bool pool_exists(Pool pool) const;
    std::optional<Pool> find_pool(std::string_view name);
    /// Delete a pool. The pool is gone when the call returns. Its pairs are freed in the background, even
    /// if a crash intervenes. Its number is free after them. EINVAL: the default pool.
    void delete_pool(Pool pool);
    /// Wait until the background has freed the pairs of deleted pools. Throws the background's failure.
    void wait_for_deletions();
    /// Counts the pairs. Linear in all pairs; the counts are not of one moment.
    PoolInfo pool_info(Pool pool);
    std::vector<PoolInfo> pools();

    // ----

    /// Wait until all acknowledged changes are durable.
    void flush();
    StoreInfo info() const;
    /// Throws std::runtime_error if an invariant above is broken. Linear.
    void check();
    Ftl &ftl();

  private:
    explicit Store(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace nvmkv

#endif
