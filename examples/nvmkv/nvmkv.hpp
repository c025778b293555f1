// NVMKV: a key-value store that leaves the work to the layer below it (Marmol, FIU 2017, chapter 4).
//
// It has no index. A key is hashed to a place in a sparse address space (ftl.hpp), and the pair is
// written there: so a get is one read, a put one write, and what the store would need a log, a tree
// and compaction for, the layer below does anyway.
//
//     auto store = nvmkv::Store::create("store.kv");
//     store.put("apple", "red");
//     std::optional<std::string> colour = store.get("apple");
//
// Places. The address space is cut into 2^key_bits *regions* of 2^value_bits sectors. What must
// hold, and is cited in nvmkv.cpp:
//   1. Region 0 describes the store: what it was created with in sector 0, pool p in sector p.
//   2. A pair begins in its region at the sector that is its pool's number: so a walk over one pool
//      reads no other's pairs. Pools and values have half of the region each, less one sector, so
//      that two pairs are never adjacent and each is a mapped range of its own.
//   3. A key has eight places, by polynomial probing from the hash (FNV-1a) of pool and key. It is
//      at the first that was free; at those before it are pairs with the flag *passed*, or
//      tombstones. A search ends at an empty region, or at a pair without that flag.
//   4. A pair is never moved, and whatever a call changes is one change of the address space.
//
// Crashes. A pair is as the last put or erase that was acknowledged left it, or as the one under way
// would have left it; never torn. A batch is that for each of its pairs, or, if told so, for all.
//
// Threads. All may call everything. Getting never waits for a put, a batch or a deletion; while a
// change that failed is rolled back, and when 64 threads read at once, it does. A get sees every
// put that was acknowledged, and none that could still be rolled back.
//
// Durability as in ftl.hpp. Failures throw std::system_error (or pm::error, which is one), whose
// code is an errno and whose what() says what to do; then nothing has changed, but for what a batch
// says. EROFS, EIO and ENOSPC come from below.
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
    bool collision_cache = true;    // of keys that are not at their first place
    bool readonly = false;          // for any number of processes, while none writes
    bool create_if_missing = false; // of open()
    // The rest is for a new store, and recorded in it.
    unsigned key_bits = 36;    // 5 and more: 2^key_bits pairs at most, and far fewer to be fast
    unsigned value_bits = 12;  // 2 to 20: values of up to 2^value_bits / 2 * 512 bytes (1 MiB)
    uint64_t max_size = 0;     // of the file, as in pm_options
    uint64_t segment_size = 0; // of the container, as in pm_options
};

struct PoolInfo {
    Pool pool;
    std::string name; // "" for the default pool
    uint64_t pairs, sectors;
};

struct StoreInfo {
    unsigned key_bits, value_bits;
    size_t value_max;    // bytes
    Pool pools_max;      // the default one included
    uint64_t file_bytes; // size of the container
    Counters io;         // what the layer below did
    uint64_t cache_hits, cache_misses;
};

class Store
{
    struct Impl;

  public:
    /// EEXIST if there is a store; EINVAL for bits out of range, or more than 48 together. A crash
    /// leaves none, or an empty store, or an *unfinished* one: that counts as none, for this too.
    static Store create(const std::string &path, const Options &options = {});
    /// ENOENT; ENODATA if it is unfinished; EBUSY if it is open elsewhere; EMEDIUMTYPE, EBADMSG if
    /// it is something else. With create_if_missing there is a new store instead of the first two.
    static Store open(const std::string &path, const Options &options = {});
    /// Delete the file. Fails as open(), for nothing else is deleted, but for an unfinished one.
    static void destroy(const std::string &path);
    Store(Store &&) noexcept;
    Store &operator=(Store &&) noexcept;
    /// Closes it, and all is durable then; call flush() first to learn of a failure. The deletion of
    /// pools goes on when it is opened again.
    ~Store();

    // ---- Pairs. Keys have 1 to 128 bytes, of any kind: EINVAL. ENOENT: there is no such pool.

    /// Copies the value; false if there is no such key. One read, none if it is cached.
    bool get(std::string_view key, std::string &value, Pool pool = default_pool);
    std::optional<std::string> get(std::string_view key, Pool pool = default_pool);
    bool exists(std::string_view key, Pool pool = default_pool);
    /// Store the pair, or replace its value. EFBIG: the value is longer than value_max; EOVERFLOW:
    /// all places of the key are taken by other keys, so create a store with more key_bits.
    void put(std::string_view key, std::string_view value, Pool pool = default_pool);
    /// Whether it was there.
    bool erase(std::string_view key, Pool pool = default_pool);

    enum class Atomic { each, whole };

    /// `each`: every pair by itself, and one wait for all. If one fails the others before it are
    /// stored; `whole`: all or none, also for readers. E2BIG: too many for that. It has room to
    /// replace 8192 pairs, or to erase 1260 (of 16384 places, 2 or 13 each); new ones take none.
    void put_batch(std::span<const KeyValue> pairs, Pool pool = default_pool,
                   Atomic atomic = Atomic::each);
    /// All of one state. To be asked for some thousands of keys at a time while others change the
    /// store: what this state needs is kept for a thousand changes; the next one waits for the end
    /// of this call, and after two seconds fails with ETIMEDOUT.
    std::vector<std::optional<std::string>> get_batch(std::span<const std::string_view> keys,
                                                      Pool pool = default_pool);
    /// How many there were. As put_batch().
    size_t erase_batch(std::span<const std::string_view> keys, Pool pool = default_pool,
                       Atomic atomic = Atomic::each);
    /// All pairs of all pools; the pools stay. Pair by pair: a crash leaves some.
    void erase_all();

    // ---- Walking

    /// Over the pairs of one pool, or of all, in no order that means anything. While others change
    /// the store it meets each pair once that is there all the time. It stays valid when the Store is
    /// moved, and ends with it.
    class Iterator
    {
      public:
        struct Pair {
            Pool pool;
            std::string key, value;
        };

        /// Go to the first pair, then to the next; false if there is none. ENOENT: the pool has
        /// been deleted.
        bool next();
        /// The pair as it is now; empty if it has been erased since.
        std::optional<Pair> get_current();

      private:
        friend class Store;
        Iterator(const Impl &store, std::optional<Pool> pool);

        const Impl *store_;
        std::optional<Pool> pool_;
        uint32_t generation_ = 0;
        uint64_t position_;    // regions before this sector are done
        uint64_t current_ = 0; // where the pair begins
    };
    Iterator begin(); // all pools
    Iterator begin(Pool pool);

    // ---- Pools

    /// EINVAL: the name is empty or has more than 63 bytes; EEXIST: there is one of that name;
    /// EMFILE: all numbers are taken, that of a deleted pool until wait_for_deletions() returns.
    Pool create_pool(std::string_view name);
    bool pool_exists(Pool pool) const;
    std::optional<Pool> find_pool(std::string_view name);
    /// It is gone when this returns; what it held is given back in the background, also over
    /// crashes, and only then its number. EINVAL: the default pool.
    void delete_pool(Pool pool);
    /// Wait until the background has done that; throws what it has met.
    void wait_for_deletions();
    /// Counts: linear in all pairs, and not of one moment.
    PoolInfo pool_info(Pool pool);
    std::vector<PoolInfo> pools();

    // ----

    /// Wait until all is durable that was acknowledged.
    void flush();
    StoreInfo info() const;
    /// Throws std::runtime_error unless all that is said above holds. Linear.
    void check();
    Ftl &ftl();

  private:
    explicit Store(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace nvmkv

#endif
