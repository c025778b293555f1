// The store as it is while open. lsm.hpp is what users see.
//
// A write passes these: writers_ (one thread writes for all that wait), the log, the memtable. Two
// threads work in the background: one writes full memtables to level 0, and one merges levels.
//
// Locks. `lock_` guards all members below it. Nobody does I/O with it, but for beginning a log. Whoever
// changes the version takes `edits_lock_` first. So the manifest has the edits in the order of the versions.
#ifndef EXAMPLES_LSM_STORE_HPP
#define EXAMPLES_LSM_STORE_HPP

#include "lsm/batch.hpp"
#include "lsm/compaction.hpp"
#include "lsm/manifest.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <set>
#include <thread>

namespace lsm
{

class PlainStore : public Store
{
  public:
    PlainStore(const std::string &directory, const Options &options);
    ~PlainStore() override;

    void put(std::string_view key, std::string_view value, WriteOptions how) override;
    void remove(std::string_view key, WriteOptions how) override;
    void write(const Batch &batch, WriteOptions how) override;
    std::optional<std::string> get(std::string_view key, const Snapshot *snapshot) override;
    std::unique_ptr<Iterator> iterator(const Snapshot *snapshot) override;
    std::unique_ptr<Snapshot> snapshot() override;
    void compact() override;
    std::optional<std::string> property(std::string_view name) override;
    void check() override;

  private:
    using Guard = std::unique_lock<std::mutex>;
    struct Writer;
    struct Pinned;

    // recovery.cpp
    void recover();
    void replay(uint64_t log, Memtable &memtable, Sequence &last);
    void add_table(State &state, const Memtable &memtable);
    void delete_files(const std::function<bool(std::string_view kind, uint64_t number)> &which);

    // write.cpp
    void begin_memtable(); // and let the one that there is be written to level 0
    void enqueue(Writer &writer);
    void write_group(Guard &guard, Writer &leader);
    void append_group(Guard &guard, Writer &leader, size_t &count);
    void turn_memtable(Guard &guard);
    void make_room(Guard &guard);
    void wait_for_background(Guard &guard);
    void begin_log();
    std::string log_path(uint64_t number) const;

    // background.cpp
    template <class Step> void work(Step step);
    void begin_work();
    void end_work();
    bool flush_step();
    bool merge_step();
    TableInfo write_table(const Memtable &memtable, uint64_t number);
    void install(Edit edit, const std::function<void()> &also);
    uint64_t new_number();
    void want();
    Sequence oldest_snapshot() const;

    // read.cpp
    Pinned pin(const Snapshot *snapshot);

    const std::string directory_;
    const Options options_;
    DirectoryLock directory_lock_;
    BlockCache cache_;
    std::mutex edits_lock_;
    std::unique_ptr<Manifest> manifest_;

    std::mutex lock_;
    std::condition_variable
        changed_; // a memtable or a level got smaller, a compaction ended, an error came or went
    std::condition_variable wanted_; // there is work for the background
    uint64_t wishes_ = 0;            // how often that was said
    std::shared_ptr<const Version> version_;
    std::shared_ptr<Memtable> memtable_ = std::make_shared<Memtable>(),
                              full_;      // full_: is being written to level 0
    std::shared_ptr<Log> log_, full_log_; // of the two memtables
    uint64_t log_number_ = 0, next_number_ = 1;
    Sequence last_sequence_ = 0;
    std::deque<Writer *> writers_;
    std::multiset<Sequence> snapshots_;
    std::array<std::string, levels> cursors_; // for next_compaction()
    std::optional<unsigned> whole_;           // compact() wants this level merged
    std::exception_ptr trouble_; // the background's last attempt failed; it tries again
    std::exception_ptr broken_;  // nobody knows what survives: no more writes
    bool stopping_ = false;
    uint64_t stalls_ = 0, longest_stall_us_ = 0;

    std::thread flusher_, merger_;

    friend class StoreSnapshot;
};

// The mutable part of the store that a read needs, as it was at one moment.
struct PlainStore::Pinned {
    std::shared_ptr<const Memtable> memtable, full;
    std::shared_ptr<const Version> version;
    Sequence sequence;
};

class StoreSnapshot : public Snapshot
{
  public:
    StoreSnapshot(PlainStore &store, Sequence sequence) : store_(store), sequence(sequence) {}
    ~StoreSnapshot() override;

  private:
    PlainStore &store_;

  public:
    const Sequence sequence;
};

} // namespace lsm

#endif
