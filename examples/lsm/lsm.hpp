// A log-structured merge store (O'Neil et al., Acta Informatica 1996), in the manner of LevelDB.
//
// A put is appended to a log, and goes into a sorted table in memory, the memtable. When the memtable is
// full, a thread in the background writes it to a file, a table. Files stand in levels. Level 0 has them as
// they came. Each further level is sorted as a whole, and ten times as large as the level above. Compaction
// merges files downwards.
//
//     auto store = lsm::Store::open("shop", {.create = true});
//     store->put("apple", "red");
//     std::optional<std::string> colour = store->get("apple");
//
// Memtables may also lie in persistent memory: see enum Memtables.
//
// Crashes. After a crash the store has every write whose call had returned and that asked for `sync`, and
// every write before it. Without `sync`, writes survive the death of the process, but the last ones may
// not survive a power failure. A batch is there as a whole or not at all.
//
// Threads. Every thread may call everything, but an Iterator or a Snapshot belongs to one thread at a time.
//
// If the log cannot be synced, nobody knows what survives. Then reads go on, but all writes fail until the
// store is opened again.
//
// Failures throw lsm::Error. Its code is an errno, and what() names file, offset and remedy. A call that
// failed has changed nothing, unless it says so.
#ifndef EXAMPLES_LSM_LSM_HPP
#define EXAMPLES_LSM_LSM_HPP

#include <libpm.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace lsm
{

class Error : public std::system_error
{
  public:
    Error(int code, const std::string &what)
        : std::system_error(code, std::generic_category()), what_(what)
    {
    }
    const char *what() const noexcept override { return what_.c_str(); }

  private:
    std::string what_;
};

constexpr size_t key_max = 64 << 10;    // bytes; a key may be empty
constexpr size_t value_max = 256 << 20; // bytes
constexpr unsigned levels = 7;

enum class Compression : uint8_t { none = 0, zstd = 1, snappy = 2 };

// Where memtables lie, and when there is a log. All but `dram` keep memtables in a libpm container. They come
// from these papers:
//
//     NoveLSM   three modes. Kannan, Bhat, Gavrilovska, A. Arpaci-Dusseau, R. Arpaci-Dusseau, USENIX ATC 2018
//     MioDB     `merging`. Duan and others, ASPLOS 2023
//     Key LSM   `key_lsm`. Sakoda, Aota, Kono: "Improving an LSM-tree key-value store with NVDIMM"
//
// Each opening may choose anew.
enum class Memtables : uint8_t {
    as_before,            // as the last opening chose; `dram` for a new store
    dram,                 // in ordinary memory, with a log
    immutable_persistent, // as `dram`; full ones move to a large one in the container (section 4.1)
    mutable_persistent, // as `dram`; while one is written to a table, writes go to a large one in the
                        // container, without a log (4.2)
    persistent_only,    // all writes go to one memtable in the container, and stay there ("NoSST")

    // All writes go to a memtable in the container. When it has `memtable_bytes`, the next begins. Lists of
    // like size are merged by pointer: no pair is copied. If all lists together have more than
    // `persistent_bytes`, the oldest becomes a table.
    merging,

    // As `merging`, but a full memtable is split. Values go to a file of values on the disk, and keys to a
    // table in the container. Tables are merged there, and no value is moved. If tables have more than
    // `persistent_bytes`, the lower levels go to the disk.
    key_lsm,
};

// By name: "dram", "immutable", "mutable", "nosst", "merging", "keylsm".
std::optional<Memtables> memtables_of(std::string_view name);

struct Options {
    bool create = false; // make the store if there is none; else ENOENT
    size_t memtable_bytes = 64 << 20;
    size_t table_bytes = 8 << 20;  // of a file, about
    size_t level_bytes = 64 << 20; // of level 1; each further level may have ten times as much
    size_t block_bytes = 4 << 10;  // what one read of a file gets
    size_t cache_bytes = 8 << 20;  // of blocks in memory
    unsigned bloom_bits = 10;      // a key; 0: no filters
    Compression compression = Compression::none;

    Memtables memtables = Memtables::as_before;

    // Of a memtable in the container; `merging`: of all; `key_lsm`: of all tables there, and may be 0. At
    // creation the container gets room for this, or for three with `mutable_persistent` and
    // `immutable_persistent`.
    size_t persistent_bytes = 256 << 20;

    // Which the container never exceeds; used at its creation. `merging`: at least sixteen times
    // `memtable_bytes`. `key_lsm`: at least four times `persistent_bytes` and sixteen times `memtable_bytes`.
    uint64_t container_bytes = UINT64_C(64) << 30;

    // If more than this share of all files of values is garbage, it is collected. 1: only by collect().
    double garbage_share = 0.2;

    pm_engine engine = PM_ENGINE_AUTO; // of a new container: redo, the default, or log

    // Used once, and noted in the file PLACES of the store. Empty: in the directory of the store.
    std::string container = {};      // path of the container
    std::string fast_directory = {}; // of tables of upper levels, for instance on faster storage

    unsigned fast_levels = 0; // tables of so many levels go to the fast directory
    unsigned read_workers =
        0; // threads that help a get: they search some tables while it searches others,
           // if this has been faster lately (4.3)
};

// Some writes that happen together. Not thread-safe.
class Batch
{
  public:
    Batch() { clear(); }
    void put(std::string_view key,
             std::string_view value); // EINVAL: longer than key_max or value_max
    void remove(std::string_view key);
    void clear();
    uint32_t count() const;
    size_t bytes() const { return text_.size(); }

  private:
    friend class BatchAccess;
    std::string text_; // batch.hpp has its form
};

struct WriteOptions {
    bool sync = false; // return when the write survives a power failure
};

// A moment of the store, for reads. Versions of keys that it may see are kept. It must be gone before the
// store.
class Snapshot
{
  public:
    virtual ~Snapshot() = default;
};

// Pairs in order of their keys, as they were when the iterator was made. key() and value() need valid(), and
// live until the iterator moves. value() may read a file of values, and throws if that fails; backwards, the
// move reads it. If a move throws, because a block or a value is damaged, the iterator is not valid, and a
// seek to another key goes on. It must be gone before the store.
class Iterator
{
  public:
    virtual ~Iterator() = default;
    virtual bool valid() const = 0;
    virtual void seek_to_first() = 0;
    virtual void seek_to_last() = 0;
    virtual void seek(std::string_view key) = 0; // to the first pair that is not before `key`
    virtual void next() = 0;                     // these two need valid()
    virtual void prev() = 0;
    virtual std::string_view key() const = 0;
    virtual std::string_view value() const = 0;
};

class Store
{
  public:
    // Open the store in a directory. EBUSY: another process has it open. EBADMSG: a file is damaged.
    static std::unique_ptr<Store> open(const std::string &directory, const Options &options = {});

    // Closing writes nothing: opening reads the log.
    virtual ~Store() = default;

    virtual void put(std::string_view key, std::string_view value, WriteOptions how = {}) = 0;
    virtual void remove(std::string_view key, WriteOptions how = {}) = 0;
    virtual void write(const Batch &batch, WriteOptions how = {}) = 0;

    // A snapshot of NULL means now.
    virtual std::optional<std::string> get(std::string_view key,
                                           const Snapshot *snapshot = nullptr) = 0;
    virtual std::unique_ptr<Iterator> iterator(const Snapshot *snapshot = nullptr) = 0;
    virtual std::unique_ptr<Snapshot> snapshot() = 0;

    // Merge all that is there now into the lowest level that it reaches. Waits for it.
    virtual void compact() = 0;

    // Collect the garbage of all files of values: copy what is needed, and delete the files. Waits for it.
    // EBADMSG, ENOENT, EIO: some could not be read. All others have been collected.
    virtual void collect() = 0;

    // Change options.persistent_bytes until the store is closed. Returns at once; the background sees to it.
    // Tables never get more than the container was made for (options.container_bytes).
    // EINVAL: less than 256 KiB, but for `key_lsm`.
    virtual void set_persistent_bytes(uint64_t bytes) = 0;

    // "levels": the files and bytes of each level, a line each. "memtables": a line each, from new to old:
    // where it is, its bytes. "stalls": how often writers waited for the background, the longest wait and the
    // sum, in microseconds. "container_log": bytes that libpm has logged since the opening. "container":
    // bytes of all tables there. "values": files of values, their bytes, and how many of these are needed.
    // "merging": how long tables have been merged since the opening, in microseconds. Nothing for another
    // name.
    virtual std::optional<std::string> property(std::string_view name) = 0;

    // Read every block of every table, and every value, and check the container. Throws Error for the first
    // that is damaged.
    virtual void check() = 0;
};

} // namespace lsm

#endif
