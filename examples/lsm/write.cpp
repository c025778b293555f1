// The way of a write. Threads that write stand in a queue. The first writes for all behind it that fit:
// one record of the log, and one sync if somebody wants one. (As LevelDB does.)
#include "lsm/store.hpp"

#include <algorithm>
#include <utility>

namespace lsm
{
namespace
{

using std::chrono::steady_clock;

constexpr size_t group_bytes_max = 1 << 20;
// With so many tables in level 0 a writer waits 1 ms, or until there are fewer.
constexpr size_t level0_slow = 8, level0_stop = 12;

} // namespace

struct PlainStore::Writer {
    const Batch *batch; // NULL: begin a new memtable instead
    bool sync;
    bool done = false;
    std::exception_ptr error{};
    std::condition_variable turn{};
};

void PlainStore::put(std::string_view key, std::string_view value, WriteOptions how)
{
    Batch batch;
    batch.put(key, value);
    write(batch, how);
}

void PlainStore::remove(std::string_view key, WriteOptions how)
{
    Batch batch;
    batch.remove(key);
    write(batch, how);
}

void PlainStore::write(const Batch &batch, WriteOptions how)
{
    Writer writer{&batch, how.sync};
    enqueue(writer);
}

void PlainStore::begin_memtable()
{
    Writer writer{nullptr, false};
    enqueue(writer);
}

void PlainStore::enqueue(Writer &writer)
{
    Guard guard(lock_);
    writers_.push_back(&writer);
    writer.turn.wait(guard, [&] { return writer.done || writers_.front() == &writer; });
    if (!writer.done)
        write_group(guard, writer);
    if (writer.error)
        std::rethrow_exception(writer.error);
}

void PlainStore::write_group(Guard &guard, Writer &leader)
{
    size_t count = 1;
    try {
        make_room(guard);
        if (leader.batch)
            append_group(guard, leader, count);
        else
            turn_memtable(guard);
    } catch (...) {
        for (size_t i = 0; i < count; i++)
            writers_[i]->error = std::current_exception();
    }
    for (; count > 0; count--) {
        Writer *writer = writers_.front();
        writers_.pop_front();
        writer->done = true;
        if (writer != &leader)
            writer->turn.notify_one();
    }
    if (!writers_.empty())
        writers_.front()->turn.notify_one();
}

// Write the batches of the first `count` writers, which it counts.
void PlainStore::append_group(Guard &guard, Writer &leader, size_t &count)
{
    Batch group = *leader.batch;
    for (; count < writers_.size(); count++) {
        const Writer &next = *writers_[count];
        if (!next.batch || (next.sync && !leader.sync) ||
            group.bytes() + next.batch->bytes() > group_bytes_max)
            break;
        BatchAccess::append(group, *next.batch);
    }
    if (last_sequence_ + group.count() > sequence_max)
        throw Error(EOVERFLOW,
                    directory_ + ": all sequence numbers are used; copy the pairs to a new store");
    BatchAccess::set_sequence(group, last_sequence_ + 1);
    Log &log = *log_;
    Memtable &memtable = *memtable_;
    const std::shared_ptr<Log> before = leader.sync ? full_log_ : nullptr;
    guard.unlock(); // only the first writer of the queue changes log and memtable
    std::exception_ptr error;
    bool is_appended = false;
    try {
        log.append(BatchAccess::text(group));
        is_appended = true;
        if (before) // its writes came first, and may not survive a power failure yet
            before->sync();
        if (leader.sync)
            log.sync();
        read_batch(BatchAccess::text(group),
                   [&](Sequence sequence, Kind kind, std::string_view key, std::string_view value) {
                       memtable.add(sequence, kind, key, value);
                   });
    } catch (...) {
        error = std::current_exception();
    }
    guard.lock();
    if (error && is_appended) // the log has it, and it may survive a crash or not
        broken_ = error;
    if (error)
        std::rethrow_exception(error);
    last_sequence_ += group.count();
}

void PlainStore::turn_memtable(Guard &guard)
{
    while (full_)
        wait_for_background(guard);
    if (!memtable_->empty())
        begin_log();
}

// Wait until the memtable has room; perhaps begin a new one. The first writer of the queue calls it.
void PlainStore::make_room(Guard &guard)
{
    bool may_slow = true;
    for (;;) {
        if (broken_)
            std::rethrow_exception(broken_);
        const size_t waiting = version_->level(0).size();
        if (may_slow && waiting >= level0_slow && waiting < level0_stop) {
            guard.unlock();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            guard.lock();
            may_slow = false;
        } else if (memtable_->bytes() < options_.memtable_bytes) {
            return;
        } else if (full_ || waiting >= level0_stop) {
            wait_for_background(guard);
        } else {
            begin_log();
        }
    }
}

void PlainStore::wait_for_background(Guard &guard)
{
    if (trouble_)
        std::rethrow_exception(trouble_);
    auto before = steady_clock::now();
    changed_.wait(guard);
    auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - before).count();
    stalls_++;
    longest_stall_us_ = std::max(longest_stall_us_, static_cast<uint64_t>(us));
}

// The memtable is full: begin another, with a log of its own. If that fails, all is as before.
void PlainStore::begin_log()
{
    uint64_t number = next_number_++;
    auto log = std::make_shared<Log>(log_path(number));
    sync_directory(directory_);
    auto memtable = std::make_shared<Memtable>();
    full_ = std::exchange(memtable_, std::move(memtable));
    full_log_ = std::exchange(log_, std::move(log));
    log_number_ = number;
    want();
}

std::string PlainStore::log_path(uint64_t number) const
{
    return numbered_path(directory_, number, "log");
}

} // namespace lsm
