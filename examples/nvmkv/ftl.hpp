// A sparse address space of 2^48 sectors of 512 bytes in a libpm container. It has the operations that
// NVMKV needs of a flash translation layer (Marmol, FIU 2017, table 4.2).
//
// A write puts its sectors into a fresh object. Then it links an *extent*, which names the object, into
// an ordered map (radix.hpp), and unlinks the old extents. So each sector is written once. Every write is
// atomic, whatever its number of ranges, and libpm's commit makes it durable. If an old extent loses only
// a part of its sectors, the rest is copied.
//
//     nvmkv::Ftl ftl("disk.pm", {.flags = PM_CREATE});
//     ftl.write(1000, bytes);                     // whole sectors; durable when it returns
//     ftl.read(1000, std::span(buffer));
//
// Durability. With Durability::sync a changing call returns when the change survives a power failure;
// several threads share one wait for the medium. With Durability::async the call returns when the change
// survives the death of the process, and flush() waits for the rest. trim() never waits.
//
// Readers never wait for a writer. A *snapshot* is the state after some change. While a snapshot is held,
// everything read through it is of this state, without copying. A snapshot shows changes that were
// acknowledged. After a trim() it also shows changes that were committed before the trim(). It never
// shows a change that could still be rolled back. This is how (ftl.cpp cites the numbers):
//
//   1. Each change has a number, its *sequence*. One thread at a time makes a change, under a lock.
//      Changes up to `visible` are visible to new snapshots. Changes up to `started` have begun to change
//      the map. Acknowledging a change makes it visible.
//   2. Before a change touches the map, it publishes the extents that it is about to replace
//      (Change::undos). They stay published as long as a snapshot from before the change is held.
//   3. A snapshot of sequence v reads the present map, even while changes are at work. Then it takes back
//      the changes after v, newest first.
//   4. Objects that a change unlinks go to a ring of *retired* objects in the container, in the same
//      transaction. A later transaction frees them, when 2 has ended. Opening frees the objects that a
//      crash has left there, so nothing leaks.
//   5. A change that fails is rolled back while nobody reads (Readers::block).
//
// Costs. Reading a sector takes some 100 ns and the copy. A change is one commit of libpm. The change logs
// about four cache lines, and the allocator logs its own. Thread-safe, unless a function says otherwise.
#ifndef EXAMPLES_NVMKV_FTL_HPP
#define EXAMPLES_NVMKV_FTL_HPP

#include "nvmkv/radix.hpp"
#include "nvmkv/readers.hpp"

#include <libpm.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nvmkv
{

constexpr size_t sector_size = 512; // bytes

enum class Durability { sync, async };

/// Adjacent sectors.
struct Range {
    uint64_t first, count;

    uint64_t end() const { return first + count; }
    bool operator==(const Range &) const = default;
};

inline Range range_of(const Extent &extent)
{
    return {extent.first, extent.count};
}

inline std::span<const char> data_of(const Extent &extent)
{
    return {extent.data, extent.count * sector_size};
}

inline bool meet(Range a, Range b)
{
    return a.first < b.end() && b.first < a.end();
}

/// The range itself. EINVAL if it is empty, or reaches beyond the address space.
Range check_range(Range range);
/// The range of so many bytes. EINVAL also if they are no whole sectors.
Range check_whole(uint64_t first, size_t bytes);

/// Throws std::system_error with this errno.
[[noreturn]] void fail(int error, const std::string &what);
/// Throws ENODATA: the creation of the file at `path` was interrupted.
[[noreturn]] void fail_unfinished(const std::string &path);

/// Bytes for the sectors from `first` on, whole sectors only.
struct Write {
    uint64_t first;
    std::span<const char> data;

    Range range() const { return {first, data.size() / sector_size}; }
};

/// Forget the sectors of `clear`, and store `put` inside this range. `put` may be empty.
struct Replacement {
    Range clear;
    Write put;
};

/// A buffer for the sectors from `first` on.
struct Read {
    uint64_t first;
    std::span<char> buffer;

    Range range() const { return {first, buffer.size() / sector_size}; }
};

/// Counts since the Ftl was opened.
struct Counters {
    uint64_t reads, bytes_read;     // extents looked at by readers, and their bytes
    uint64_t writes, bytes_written; // ranges stored, and their bytes
    uint64_t trims;                 // ranges forgotten
};

struct FtlRoot; // the root of the container

class Ftl
{
  public:
    struct Options {
        unsigned flags = 0; // PM_CREATE, PM_EXCLUSIVE, PM_READONLY
        Durability durability = Durability::sync;
        uint64_t max_size = 0;     // of a new container; as in pm_options
        uint64_t segment_size = 0; // of a new container; as in pm_options
        pm_engine engine = PM_ENGINE_AUTO; // of a new container: redo, the default, or log
    };

    /// One state of the address space. Hold it briefly: meanwhile no memory is freed. If a change has no
    /// room for retired objects, it waits for the snapshot's end, and fails after two seconds
    /// (ETIMEDOUT). A change that must be rolled back waits, too. If the snapshot does not end then, the
    /// Ftl becomes read-only (EIO). So a thread that writes should hold no snapshot.
    class Snapshot
    {
      public:
        Snapshot(Snapshot &&) = default;

        /// The extents that have sectors in `range`, in order. Valid as long as this snapshot.
        std::vector<Extent> overlapping(Range range);
        /// The first extent that begins at or after `sector`, if any.
        std::optional<Extent> at_or_after(uint64_t sector);
        /// The adjacent mapped sectors from the first mapped one at or after `sector` on, if any.
        std::optional<Range> mapped(uint64_t sector);

        uint64_t sequence() const { return pin_.sequence(); }
        const std::string &path() const;
        /// The bytes of an extent. This counts as a read.
        std::span<const char> read(const Extent &extent);

      private:
        friend class Ftl;
        Snapshot(const Ftl &ftl, Readers::Pin pin, bool latest)
            : ftl_(&ftl), pin_(std::move(pin)), latest_(latest)
        {
        }
        bool undisturbed() const;

        const Ftl *ftl_;
        Readers::Pin pin_;
        bool latest_; // reads the present map, and takes no change back
    };

    /// A change on its way to the medium.
    struct Ticket {
        pm_ticket commit;
        uint64_t sequence;
    };

    /// Opens, or with PM_CREATE creates, the container. Throws pm::error (EBUSY: it is open elsewhere;
    /// EMEDIUMTYPE: it belongs to another program). If its creation was interrupted and PM_CREATE is not
    /// given, throws ENODATA.
    Ftl(const std::string &path, const Options &options);
    ~Ftl();

    // ---- Reading. It works even after the medium has failed.

    /// Unmapped sectors read as zeros.
    void read(uint64_t first, std::span<char> buffer);
    bool exists(uint64_t sector);
    /// The mapped parts of a range, in order; adjacent extents are one.
    std::vector<Range> range_exist(Range range);
    /// The first mapped range at or after `sector`. A walk begins with 0 and goes on at each range's end.
    std::optional<Range> iterate(uint64_t sector);
    /// These two read all sectors from one state.
    void atomic_read(std::span<const Read> reads);
    std::vector<bool> atomic_exists(std::span<const uint64_t> sectors);
    /// Copies the mapped parts of the range, one behind the other, until the buffer is full. Returns the
    /// copied parts. All are of one state.
    std::vector<Range> cond_range_read(Range range, std::span<char> buffer);

    Snapshot snapshot() const;
    /// The state that the next change will find, whether it is visible yet or not. REQUIRES: nobody
    /// changes anything while the snapshot is held.
    Snapshot latest() const;

    // ---- Changing. A function that fails throws pm::error or std::system_error, and has changed
    // nothing. The errnos:
    //
    //     ENOSPC, EROFS, EIO
    //     EINVAL      a range is empty, reaches beyond 2^48, or overlaps another
    //     E2BIG       the change replaces more extents than retired_max allows
    //     ETIMEDOUT   a snapshot is held for too long

    void write(uint64_t first, std::span<const char> data);
    void trim(Range range);  // without waiting for the medium
    void ptrim(Range range); // extent by extent, however many there are; see atomic_ptrim()
    /// All or nothing, after a crash and for readers.
    void atomic_write(std::span<const Write> writes);
    void atomic_ptrim(std::span<const Range> ranges);
    /// atomic_write(), if none of the sectors is mapped. Else returns false, and writes nothing.
    bool cond_atomic_write(std::span<const Write> writes);
    /// Each write by itself is atomic. The call waits once for all of them.
    void batch(std::span<const Write> writes);

    /// Commit one change, without waiting for the medium. All functions above use this one. With
    /// Durability::async the change is visible at once. If `if_unmapped` and a sector in the ranges is
    /// mapped, changes nothing, and returns an empty optional.
    std::optional<Ticket> submit(std::span<const Replacement> change, bool if_unmapped = false);
    /// Wait until a change is durable, and make it visible. With Durability::async return at once.
    void wait(const Ticket &ticket);
    /// Wait until all changes are durable.
    void flush();

    /// The sequence that the next change will have. REQUIRES: nobody changes anything meanwhile.
    uint64_t next_sequence() const { return started_.load() + 1; }

    // ---- Looking inside

    Counters counters() const;
    pm_container *container() const { return container_.get(); }
    const std::string &path() const { return path_; }
    uint64_t extents(); // mapped, by the newest change
    uint64_t sectors();
    /// Throws std::runtime_error if an invariant is broken, if pm_check() fails, or if an object of the
    /// container is not in use. REQUIRES: nobody changes anything meanwhile.
    void check();

  private:
    // Sectors that a change has replaced, widened to whole extents, and their old extents (2).
    struct Undo {
        Range range;
        std::vector<Extent> old;
    };
    struct Change {
        uint64_t sequence;
        std::vector<Undo> undos; // in order, disjoint
        uint64_t retired_end;    // the end of the ring of retired objects after this change
    };
    static constexpr size_t changes_max = 1024; // how many changes are remembered

    struct Plan {
        std::vector<Undo> undos;
        size_t extents; // how many extents are replaced
        size_t retired; // how many objects are retired, at most
    };

    void create();
    void reclaim();
    void free_retired();
    void retire(void *object);
    void make_room(size_t objects);
    Plan plan(std::span<const Replacement> change) const;
    void apply(const Replacement &replacement);
    void unlink(const Extent &extent);
    void link(uint64_t first, std::span<const char> data);
    void take_back(uint64_t sequence);
    void show(uint64_t sequence);
    void collect(Range range, std::vector<Extent> &found) const;
    void undo_after(uint64_t sequence, Range range, std::vector<Extent> &found) const;
    static void check_ranges(std::span<const Replacement> change);

    std::string path_;
    pm::container container_;
    Durability durability_;
    bool readonly_;
    FtlRoot *root_ = nullptr;
    std::unique_ptr<Radix> map_;

    mutable Readers readers_;
    std::atomic<uint64_t> visible_{0}, started_{0};
    std::array<std::atomic<Change *>, changes_max>
        changes_{}; // by sequence, for those in (reclaimed_, started_]

    std::mutex writing_;      // guards the members below, and the transaction
    bool failed_ = false;     // a rollback has failed: no change is possible any more
    uint64_t reclaimed_ = 0;  // changes up to this one are forgotten
    uint64_t free_until_ = 0; // retired objects before this position may be freed
    pm_ticket last_{};        // the newest commit
    std::atomic<uint64_t> writes_{0}, bytes_written_{0}, trims_{0};
};

} // namespace nvmkv

#endif
