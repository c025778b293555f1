// The store as it is while open. lsm.hpp is what users see.
//
// A write passes these: writers_ (one thread writes for all that wait), then log and memtable, or a memtable
// in persistent memory. Three threads work in the background. One writes full memtables to level 0. One
// changes the other levels: it merges tables, moves them, and collects garbage. One keeps things ready: it
// makes the next log, moves memtables to persistent memory, merges lists there, and frees there.
//
// Locks. `lock_` guards all members below it. Nobody does I/O with it, but for a log that is not ready yet.
// Whoever changes the version takes `edits_lock_` first. So the manifest has the edits in the order of the
// versions. The order of locks is edits_lock_, lock_, Container::Hold.
#ifndef EXAMPLES_LSM_STORE_HPP
#define EXAMPLES_LSM_STORE_HPP

#include "lsm/batch.hpp"
#include "lsm/budget.hpp"
#include "lsm/collect.hpp"
#include "lsm/manifest.hpp"
#include "lsm/parallel.hpp"
#include "lsm/persistent.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <set>
#include <thread>

namespace lsm
{

// A memtable, and where its writes are durable: in its log, or in itself.
struct Buffer {
    std::shared_ptr<Memtable> table{};
    std::shared_ptr<Log> log{}; // NULL: the memtable is persistent
    uint64_t log_number = 0;
    Sequence first = 0;  // its oldest write
    Sequence last = 0;   // its newest write, if it is sealed
    bool synced = false; // as it was found: it has a write that asked for `sync`
    bool sealed = false; // no more writes come
    bool full = false;   // the container had no room for it to grow
    bool busy = false;   // it becomes a table, or is merged with another
    std::shared_ptr<PersistentMemtable>
        grave{}; // its nodes move to the next list, or here if nobody needs them

    PersistentMemtable *persistent() const
    {
        return log ? nullptr : static_cast<PersistentMemtable *>(table.get());
    }
};

// Invariants
//   1. From new to old: every write of one is newer than all of the next. The first takes the writes.
//   2. All but the first are sealed. There is one exception: the newest in the container, if memtables with a
//      log move there. Only memtables with a log are before it.
//   3. Only the last becomes a table. So level 0 gets tables in the order of their writes.
//   4. Two that are merged are neighbours.
using Buffers = std::vector<Buffer>;

constexpr size_t memtable_min = 256 << 10;
constexpr size_t key_lsm_memtables = 16; // for which the container has room

constexpr size_t filter_share = 64; // a byte of filter for so many of a memtable

// The newest in the container, or the end.
template <class AnyBuffers> auto newest_persistent(AnyBuffers &buffers)
{
    return std::find_if(buffers.begin(), buffers.end(),
                        [](const Buffer &b) { return b.persistent() != nullptr; });
}

class LsmStore : public Store
{
  public:
    LsmStore(const std::string &directory, const Options &options);
    ~LsmStore() override;

    void put(std::string_view key, std::string_view value, WriteOptions how) override;
    void remove(std::string_view key, WriteOptions how) override;
    void write(const Batch &batch, WriteOptions how) override;
    std::optional<std::string> get(std::string_view key, const Snapshot *snapshot) override;
    std::unique_ptr<Iterator> iterator(const Snapshot *snapshot) override;
    std::unique_ptr<Snapshot> snapshot() override;
    void compact() override;
    void collect() override;
    void set_persistent_bytes(uint64_t bytes) override;
    std::optional<std::string> property(std::string_view name) override;
    void check() override;

  private:
    using Guard = std::unique_lock<std::mutex>;
    enum Worker { flusher, merger, keeper };
    struct Writer;
    struct Pinned;
    struct Old;

    // recovery.cpp
    void recover();
    void open_container();
    void open_places();
    Buffers found_buffers(const std::vector<uint64_t> &logs) const;
    void replay(Buffer &buffer) const;
    void check_places(const State &state) const;
    bool take(Buffers found);
    void go_on();
    void delete_files(const std::function<bool(std::string_view kind, uint64_t number)> &which);

    // write.cpp
    void begin_memtable(); // and let the one that there is be written to level 0
    void enqueue(Writer &writer);
    void write_group(Guard &guard, Writer &leader);
    void append_group(Guard &guard, Writer &leader, size_t &count);
    bool goes_elsewhere(const Error &error);
    static void write_to_log(const Buffer &to, const std::vector<const Entries *> &group,
                             Sequence first, bool sync, bool &unknown);
    static void write_to_container(const Buffer &to, const std::vector<const Entries *> &group,
                                   Sequence first, bool sync, bool &unknown);
    void turn_memtable(Guard &guard);
    void make_room(Guard &guard);
    void wait_for_background(Guard &guard, std::initializer_list<Worker> whom);
    void wait_for_rest(Guard &guard, std::initializer_list<Worker> whom);
    void set_broken(std::exception_ptr error);
    void note_stall(std::chrono::steady_clock::time_point since);

    // buffers.cpp
    bool has_logs() const;
    size_t persistent_limit() const;
    bool is_full(const Buffer &buffer) const;
    bool may_begin_buffer() const;
    bool any_logged(size_t from) const;
    void begin_buffer();
    Buffer next_buffer();
    Buffer logged_buffer(uint64_t number) const;
    Buffer persistent_buffer();
    void change_buffers(const std::function<void(Buffers &)> &change);
    std::string log_path(uint64_t number) const;

    // background.cpp
    template <class Step> void work(Worker worker, Step step);
    template <class Step> bool if_room(Step step);
    void begin_work();
    void end_work();
    Works works();
    bool merge_step();
    bool merge_tables();
    bool move_tables(const Version &version);
    bool collect_step(const Version &version, uint64_t asked);
    void install(Edit edit, ValueWriter *values, const std::function<void()> &also);
    template <class Holds>
    void wait_until(Guard &guard, std::initializer_list<Worker> whom, Holds holds);
    void set_budget(uint64_t bytes);
    uint64_t table_budget() const;
    uint64_t new_number();
    void want();
    Sequence oldest_snapshot() const;
    void retire(Buffer buffer, std::shared_ptr<const void> filter = {});

    // flush.cpp
    bool flush_step();
    bool keep_ready_step();
    bool prepare_log();
    bool let_go();
    bool is_unread(const Old &old);
    void drop_eras();
    bool free_step();
    void room_came();
    bool move_step();
    bool choose_move(Buffer &from, Buffer &to);
    bool make_way(uint64_t log);
    void move(const Buffer &from, PersistentMemtable &to);
    ValueWriter value_writer();
    TablePlace place_of(unsigned level);
    TableInfo write_table(const Memtable &memtable, ValueWriter &values);

    // merge_lists.cpp
    bool merge_lists_step();
    bool merge_lists();
    std::optional<std::pair<Buffer, Buffer>> choose_lists();
    void begin_merge(const Buffer &newer, const Buffer &older);
    void renew_filter(const Buffer &buffer, size_t bytes);
    void give_up_merge(const Buffer &newer);
    void end_merge(const Buffer &newer);
    template <class Change> void change_pair(const Buffer &newer, Change change);
    Sequence oldest_read();
    bool is_over_budget(size_t more) const;
    bool wait_for_lists(Guard &guard, const Error &error, uint64_t freed);
    bool is_freeing();

    // read.cpp
    Pinned pin(const Snapshot *snapshot);
    Pinned pinned(const Snapshot *snapshot) const;
    std::unique_ptr<Snapshot> snapshot_at(Sequence sequence);

    Options options_; // from the constructor on constant
    DirectoryLock directory_lock_;
    BlockCache cache_;
    Places places_;
    std::unique_ptr<Container> container_; // NULL: none
    ValueFiles values_;
    Storage storage_;
    std::mutex edits_lock_;
    std::unique_ptr<Manifest> manifest_;

    std::mutex lock_;
    std::condition_variable
        changed_; // a memtable or a level got smaller, a compaction ended, an error came or went
    std::condition_variable wanted_; // there is work for the background
    uint64_t wishes_ = 0;            // how often that was said
    // A worker has looked, and found nothing that it could do; and `wishes_` when it began to look.
    std::condition_variable rests_;
    std::array<uint64_t, 3> rests_since_{};
    std::shared_ptr<const Version> version_;
    std::shared_ptr<const Buffers> buffers_ = std::make_shared<Buffers>();
    // The values that buffers_ has had, from old to new, and its last write at that time. Whoever reads by an
    // old one may still stand anywhere in its memtables.
    struct Era {
        uint64_t number;
        Sequence since;
        std::weak_ptr<const Buffers> buffers;
    };
    std::deque<Era> eras_;
    uint64_t era_ = 0;
    std::optional<Buffer> ready_; // to be the next with a log
    // Not needed any more. The keeper lets them go, for that takes long: files are deleted. Else a reader or
    // writer would, if it was the last to use one.
    struct Old {
        Buffer buffer;
        std::shared_ptr<const void> filter; // of a list that has a new one
        uint64_t era;                       // the first without it
    };
    std::vector<Old> old_buffers_;
    bool lets_go_ = false; // the keeper has taken some out, and is about to destroy them
    Tables old_tables_;
    uint64_t next_number_ = 1, newest_log_ = 0; // of all files; of a log that took writes
    bool container_full_ = false;
    // Somebody had no room in the container: no merge begins before a writer has.
    bool starves_ = false;
    // The merger's: Container::times_freed() when no table found room.
    uint64_t full_at_ = UINT64_MAX;
    // A worker has no room: let it know when some of the container has been freed.
    bool awaits_room_ = false;
    Sequence last_sequence_ = 0;
    std::deque<Writer *> writers_;
    std::multiset<Sequence> snapshots_;
    uint64_t budget_ = 0;                     // options_.persistent_bytes, as it is now
    std::array<std::string, levels> cursors_; // for next_compaction()
    std::optional<unsigned> whole_;           // compact() or collect() wants this level merged
    uint64_t collections_asked_ = 0;          // how often collect() wanted all garbage collected
    uint64_t collections_done_ = 0;           // and how often that is done
    std::set<uint64_t> spared_;               // value files that cannot be read
    std::exception_ptr damage_;               // found in one of them
    std::chrono::steady_clock::duration merged_for_{};
    unsigned draining_ = 0; // calls of compact() that want all memtables in tables
    std::array<std::exception_ptr, 3> troubles_; // a worker's last attempt failed; it tries again
    std::exception_ptr broken_;                  // nobody knows what survives: no more writes
    bool stopping_ = false;
    uint64_t stalls_ = 0, longest_stall_us_ = 0, stalled_us_ = 0;

    std::unique_ptr<ParallelReader> parallel_; // NULL: nobody helps
    std::thread flusher_, merger_, keeper_;

    friend class StoreSnapshot;
};

// The mutable part of the store that a read needs, as it was at one moment.
struct LsmStore::Pinned {
    std::shared_ptr<const Buffers> buffers;
    std::shared_ptr<const Version> version;
    Sequence sequence;
};

class StoreSnapshot : public Snapshot
{
  public:
    StoreSnapshot(LsmStore &store, Sequence sequence) : store_(store), sequence(sequence) {}
    ~StoreSnapshot() override;

  private:
    LsmStore &store_;

  public:
    const Sequence sequence;
};

} // namespace lsm

#endif
