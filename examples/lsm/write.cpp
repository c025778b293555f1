// The way of a write. Threads that write stand in a queue. The first writes for all behind it that fit: one
// record of the log, and one sync if somebody wants one, or one commit of the container. (As LevelDB does.)
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

struct LsmStore::Writer {
    const Entries *entries; // NULL: begin a new memtable instead
    bool sync;
    bool done = false;
    std::exception_ptr error{};
    std::condition_variable turn{};
};

void LsmStore::put(std::string_view key, std::string_view value, WriteOptions how)
{
    const Entries one(Kind::value, key, value);
    Writer writer{&one, how.sync};
    enqueue(writer);
}

void LsmStore::remove(std::string_view key, WriteOptions how)
{
    const Entries one(Kind::deletion, key);
    Writer writer{&one, how.sync};
    enqueue(writer);
}

void LsmStore::write(const Batch &batch, WriteOptions how)
{
    const Entries all(batch);
    Writer writer{&all, how.sync};
    enqueue(writer);
}

void LsmStore::begin_memtable()
{
    Writer writer{nullptr, false};
    enqueue(writer);
}

void LsmStore::enqueue(Writer &writer)
{
    Guard guard(lock_);
    writers_.push_back(&writer);
    writer.turn.wait(guard, [&] { return writer.done || writers_.front() == &writer; });
    if (!writer.done)
        write_group(guard, writer);
    if (writer.error)
        std::rethrow_exception(writer.error);
}

void LsmStore::write_group(Guard &guard, Writer &leader)
{
    size_t count = 1;
    std::exception_ptr error;
    for (bool again = true; again;) {
        again = false;
        error = nullptr;
        count = 1;
        const uint64_t freed = container_ ? container_->times_freed() : 0;
        try {
            make_room(guard);
            if (leader.entries)
                append_group(guard, leader, count);
            else
                turn_memtable(guard);
        } catch (const Error &failure) {
            error = std::current_exception();
            try {
                again = goes_elsewhere(failure) || wait_for_lists(guard, failure, freed);
            } catch (...) { // of the background
                error = std::current_exception();
            }
        } catch (...) {
            error = std::current_exception();
        }
    }
    for (size_t i = 0; i < count; i++)
        writers_[i]->error = error;
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

// If the container has no room for the first memtable to grow, and another may take its place: take it for
// full.
bool LsmStore::goes_elsewhere(const Error &error)
{
    const Buffer &first = buffers_->front();
    if (error.code().value() != ENOSPC || !first.persistent() || first.full || broken_ ||
        options_.memtables != Memtables::mutable_persistent)
        return false;
    change_buffers([](Buffers &buffers) { buffers.front().full = true; });
    return true;
}

// Write the entries of the first `count` writers, which it counts.
void LsmStore::append_group(Guard &guard, Writer &leader, size_t &count)
{
    std::vector<const Entries *> group = {leader.entries};
    size_t bytes = leader.entries->bytes(), writes = leader.entries->count();
    for (; count < writers_.size(); count++) {
        const Writer &next = *writers_[count];
        if (!next.entries || (next.sync && !leader.sync) ||
            bytes + next.entries->bytes() > group_bytes_max)
            break;
        group.push_back(next.entries);
        bytes += next.entries->bytes();
        writes += next.entries->count();
    }
    if (last_sequence_ + writes > sequence_max)
        throw Error(EOVERFLOW,
                    places_.directory +
                        ": all sequence numbers are used; copy the pairs to a new store");
    const std::shared_ptr<const Buffers> buffers = buffers_;
    const Sequence first = last_sequence_ + 1;
    guard.unlock(); // only the first writer of the queue changes the first memtable
    std::exception_ptr error;
    bool unknown = false;
    try {
        unknown = leader.sync;
        if (leader.sync) // earlier writes may not survive a power failure yet
            for (const Buffer &buffer : *buffers)
                if (buffer.log && buffer.sealed)
                    buffer.log->sync();
        unknown = false;
        if (buffers->front().log)
            write_to_log(buffers->front(), group, first, leader.sync, unknown);
        else
            write_to_container(buffers->front(), group, first, leader.sync, unknown);
    } catch (...) {
        error = std::current_exception();
    }
    guard.lock();
    if (error && unknown)
        set_broken(error);
    if (error)
        std::rethrow_exception(error);
    last_sequence_ += writes;
    starves_ = false;
}

// `unknown`: it failed, but may survive a crash.
void LsmStore::write_to_log(const Buffer &to, const std::vector<const Entries *> &group,
                            Sequence first, bool sync, bool &unknown)
{
    Batch whole;
    for (const Entries *entries : group)
        entries->append_to(whole);
    BatchAccess::set_sequence(whole, first, sync);
    to.log->append(BatchAccess::text(whole));
    unknown = true;
    if (sync)
        to.log->sync();
    read_batch(BatchAccess::text(whole), first,
               [&](Sequence sequence, Kind kind, std::string_view key, std::string_view value) {
                   to.table->add(sequence, kind, key, value);
               });
    unknown = false;
}

// First make all nodes and reserve room for their commit, which may find none. Then link them.
void LsmStore::write_to_container(const Buffer &to, const std::vector<const Entries *> &group,
                                  Sequence first, bool sync, bool &unknown)
{
    PersistentMemtable &table = *to.persistent();
    Container::Hold hold(table.container());
    std::vector<Memtable::Node *> made;
    size_t links = 0;
    Sequence next = first;
    try {
        for (const Entries *entries : group)
            next = entries->each(next, [&](Sequence sequence, Kind kind, std::string_view key,
                                           std::string_view value) {
                made.push_back(table.make(tagged(key, sequence, kind), value));
                links += Memtable::height(made.back());
            });
        table.reserve(links);
    } catch (...) {
        for (Memtable::Node *node : made)
            table.release(node);
        throw;
    }
    unknown = true;
    for (Memtable::Node *node : made)
        table.link(node);
    table.commit(next - 1, sync);
    unknown = false;
}

void LsmStore::turn_memtable(Guard &guard)
{
    while (!may_begin_buffer())
        wait_for_background(guard, {flusher, keeper});
    if (!buffers_->front().table->empty() && options_.memtables != Memtables::persistent_only)
        begin_buffer();
}

// Wait until the first memtable has room; perhaps begin a new one. The first writer of the queue calls it.
void LsmStore::make_room(Guard &guard)
{
    // A memtable that is mutable and persistent is there so that no writer waits for tables.
    bool may_slow = has_logs() && options_.memtables != Memtables::mutable_persistent;
    for (;;) {
        if (broken_)
            std::rethrow_exception(broken_);
        const size_t waiting = version_->level(0).size();
        if (may_slow && waiting >= level0_slow && waiting < level0_stop) {
            const auto before = steady_clock::now();
            guard.unlock();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            guard.lock();
            note_stall(before);
            may_slow = false;
        } else if (!is_full(buffers_->front())) {
            return;
        } else if (waiting >= level0_stop) {
            wait_for_background(guard, {merger});
        } else if (!may_begin_buffer()) {
            wait_for_background(guard, {flusher, keeper});
        } else {
            begin_buffer();
        }
    }
}

// `whom`: the workers whose failure is the reason to wait no longer.
void LsmStore::wait_for_background(Guard &guard, std::initializer_list<Worker> whom)
{
    for (const Worker worker : whom)
        if (troubles_[worker])
            std::rethrow_exception(troubles_[worker]);
    want(); // for the workers do not see how the first memtable grows
    const auto before = steady_clock::now();
    changed_.wait(guard);
    note_stall(before);
}

// Wait until each of these workers has looked for something to do, and found nothing or failed.
void LsmStore::wait_for_rest(Guard &guard, std::initializer_list<Worker> whom)
{
    want();
    const auto before = steady_clock::now();
    rests_.wait(guard, [&] {
        return std::all_of(whom.begin(), whom.end(),
                           [&](Worker w) { return troubles_[w] || rests_since_[w] == wishes_; });
    });
    note_stall(before);
}

void LsmStore::note_stall(steady_clock::time_point since)
{
    using std::chrono::microseconds;
    const auto us = std::chrono::duration_cast<microseconds>(steady_clock::now() - since).count();
    stalls_++;
    stalled_us_ += static_cast<uint64_t>(us);
    longest_stall_us_ = std::max(longest_stall_us_, static_cast<uint64_t>(us));
}

} // namespace lsm
