// A sparse address space of 2^48 sectors of 512 bytes in a libpm container: what NVMKV asks of a
// flash translation layer (Marmol, FIU 2017, table 4.2).
//
// A write puts its sectors into a fresh object, links an *extent* that names it into an ordered map
// (radix.hpp), and unlinks what was there: so each sector is written once, and every write is
// atomic, of however many ranges; libpm's commit makes it durable. What an extent has only
// partly lost is copied.
//
//     nvmkv::Ftl ftl("disk.pm", {.flags = PM_CREATE});
//     ftl.write(1000, bytes);                     // whole sectors; durable when it returns
//     ftl.read(1000, std::span(buffer));
//
// Durable. With Durability::sync a call that changes something returns when that survives a power
// failure; several threads share one wait for the medium. With Durability::async it returns when it
// survives the death of the process, and flush() waits for the rest. trim() never waits.
//
// Readers never wait for a writer. A *snapshot* is the state after some change; whatever is
// read through it is of that state, without copying, for as long as it is held. A snapshot shows
// what was acknowledged (and, from a trim() on, what was committed before that), never what could
// still be rolled back. This is how (the numbers are cited in ftl.cpp):
//   1. Changes are numbered: the *sequence*. One thread at a time makes one, under a lock. All that
//      are visible to new snapshots are those up to `visible`; those up to `started` have begun to
//      change the map. Visible becomes what is acknowledged.
//   2. Before it touches the map, a change publishes what it is about to replace (Change::undos),
//      and until no snapshot from before it is held, that stays.
//   3. A snapshot of sequence v reads the map as it is, however many changes are at work in it, and
//      then takes back those after v, newest first.
//   4. What a change has unlinked goes to a ring of *retired* objects in the container, within the
//      same transaction, and is freed by a later one, when 2 has ended. Open frees what a crash has
//      left there, so nothing leaks.
//   5. A change that fails is rolled back while nobody reads (Readers::block).
//
// Costs. Reading a sector: some 100 ns and the copy. A change: one commit of libpm; it logs about
// four cache lines, and the allocator's. Thread-safe, but for what says otherwise.
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

/// The range; EINVAL unless it has sectors, and all of them are there.
Range check_range(Range range);
/// That of so many bytes; EINVAL also if they are no whole sectors.
Range check_whole(uint64_t first, size_t bytes);

/// std::system_error with that errno.
[[noreturn]] void fail(int error, const std::string &what);
/// ENODATA: what is at `path` was not created to the end.
[[noreturn]] void fail_unfinished(const std::string &path);

/// Bytes for the sectors from `first` on; whole sectors.
struct Write {
    uint64_t first;
    std::span<const char> data;

    Range range() const { return {first, data.size() / sector_size}; }
};

/// Forget `clear`, and store `put` somewhere inside, unless it is empty.
struct Replacement {
    Range clear;
    Write put;
};

/// Where the sectors from `first` on are to go.
struct Read {
    uint64_t first;
    std::span<char> buffer;

    Range range() const { return {first, buffer.size() / sector_size}; }
};

/// Since it was opened.
struct Counters {
    uint64_t reads, bytes_read;     // extents looked at by readers, and their bytes
    uint64_t writes, bytes_written; // ranges stored, and their bytes
    uint64_t trims;                 // ranges forgotten
};

struct FtlRoot; // what the container's root is

class Ftl
{
  public:
    struct Options {
        unsigned flags = 0; // PM_CREATE, PM_EXCLUSIVE, PM_READONLY
        Durability durability = Durability::sync;
        uint64_t max_size = 0;     // of a new container; as in pm_options
        uint64_t segment_size = 0; // of a new container; as in pm_options
    };

    /// One state of the address space. To be held briefly: meanwhile no memory is given back. A
    /// change that runs out of room for what is retired waits for it to end, and fails after two
    /// seconds (ETIMEDOUT); one that has to be rolled back waits too, and leaves the Ftl read-only
    /// (EIO) if it does not end. So a thread that writes had better hold none.
    class Snapshot
    {
      public:
        Snapshot(Snapshot &&) = default;

        /// The extents that have sectors in `range`, in order. Valid as long as this snapshot.
        std::vector<Extent> overlapping(Range range);
        /// The first that begins at or after `sector`, if any.
        std::optional<Extent> at_or_after(uint64_t sector);
        /// The adjacent mapped sectors from the first mapped one at or after `sector` on, if any.
        std::optional<Range> mapped(uint64_t sector);

        uint64_t sequence() const { return pin_.sequence(); }
        const std::string &path() const;
        /// The bytes of an extent; counted as a read.
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
        bool latest_; // reads the map as it is
    };

    /// A change on its way to the medium.
    struct Ticket {
        pm_ticket commit;
        uint64_t sequence;
    };

    /// Opens, or with PM_CREATE creates, the container. Throws pm::error (EBUSY: it is open
    /// elsewhere; EMEDIUMTYPE: it holds something else), and ENODATA if its creation was cut short
    /// and PM_CREATE is not given.
    Ftl(const std::string &path, const Options &options);
    ~Ftl();

    // ---- Reading. It goes on when the medium has failed.

    /// Unmapped sectors read as zeros.
    void read(uint64_t first, std::span<char> buffer);
    bool exists(uint64_t sector);
    /// The mapped parts of a range, in order; adjacent extents are one.
    std::vector<Range> range_exist(Range range);
    /// The first mapped range at or after `sector`: for a walk, begin with 0 and go on at its end.
    std::optional<Range> iterate(uint64_t sector);
    /// All from one state.
    void atomic_read(std::span<const Read> reads);
    std::vector<bool> atomic_exists(std::span<const uint64_t> sectors);
    /// Copies the mapped parts of the range, one behind the other, as far as the buffer goes;
    /// returns which these are. One state.
    std::vector<Range> cond_range_read(Range range, std::span<char> buffer);

    Snapshot snapshot() const;
    /// The state that the next change will find, whether visible yet or not. REQUIRES: nobody
    /// changes anything as long as it is held.
    Snapshot latest() const;

    // ---- Changing. Throws pm::error or std::system_error, and has then changed nothing: ENOSPC,
    // EROFS, EIO; EINVAL for ranges that are empty, reach beyond 2^48 or overlap; E2BIG for a
    // change that replaces more extents than retired_max allows; ETIMEDOUT if a snapshot is held
    // for too long.

    void write(uint64_t first, std::span<const char> data);
    void trim(Range range);  // without waiting for the medium
    void ptrim(Range range); // extent by extent, however many there are; see atomic_ptrim()
    /// All or nothing, after a crash and for readers.
    void atomic_write(std::span<const Write> writes);
    void atomic_ptrim(std::span<const Range> ranges);
    /// atomic_write() if none of the sectors is mapped; else false, and nothing is written.
    bool cond_atomic_write(std::span<const Write> writes);
    /// Each write by itself is atomic; they are waited for together.
    void batch(std::span<const Write> writes);

    /// What all of these are made of: one change, committed, but not waited for. Of async
    /// durability it is visible at once. Empty, and nothing changed, if `if_unmapped` and
    /// something in the ranges is mapped.
    std::optional<Ticket> submit(std::span<const Replacement> change, bool if_unmapped = false);
    /// Wait until it is durable, and show it; with Durability::async return at once.
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
    /// Throws std::runtime_error unless all invariants hold, pm_check() included, and every object
    /// of the container is in use. REQUIRES: nobody changes anything meanwhile.
    void check();

  private:
    // Sectors that a change has replaced, widened to whole extents, and what they were (2).
    struct Undo {
        Range range;
        std::vector<Extent> old;
    };
    struct Change {
        uint64_t sequence;
        std::vector<Undo> undos; // in order, disjoint
        uint64_t retired_end;    // where the ring of retired objects ended after it
    };
    static constexpr size_t changes_max = 1024; // remembered

    struct Plan {
        std::vector<Undo> undos;
        size_t extents; // that are replaced
        size_t retired; // objects, at most
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
        changes_{}; // by sequence, of (reclaimed_, started_]

    std::mutex writing_;      // of what follows, and of the transaction
    bool failed_ = false;     // a rollback has failed: nothing can be changed any more
    uint64_t reclaimed_ = 0;  // changes up to this one are forgotten
    uint64_t free_until_ = 0; // retired objects before this position may be freed
    pm_ticket last_{};        // the newest commit
    std::atomic<uint64_t> writes_{0}, bytes_written_{0}, trims_{0};
};

} // namespace nvmkv

#endif
