// Which memtable comes next, and how it begins.
//
//     dram                   log, log, ...: the next when the one before is in a table
//     immutable_persistent   the same; and below them one in the container, into which they move
//     mutable_persistent     one with a log; while it is written to a table, one in the container. If there
//                            is no room, as `dram`
//     persistent_only        one in the container, for ever
//     merging                one in the container; and below it lists that were full, and are merged
//     key_lsm                the same, but those that were full are written to tables
#include "lsm/store.hpp"

#include <algorithm>
#include <cerrno>

namespace lsm
{
namespace
{

constexpr ptrdiff_t persistent_most = 2; // memtables in the container
constexpr size_t key_lsm_most = 3;       // so that a burst need not wait

} // namespace

// Whether new memtables may have a log. Else all writes go to the container.
bool LsmStore::has_logs() const
{
    return options_.memtables != Memtables::persistent_only &&
           options_.memtables != Memtables::merging && options_.memtables != Memtables::key_lsm;
}

// Bytes of a memtable in the container.
size_t LsmStore::persistent_limit() const
{
    if (options_.memtables == Memtables::persistent_only)
        return SIZE_MAX;
    return has_logs() ? budget_ : options_.memtable_bytes;
}

bool LsmStore::is_full(const Buffer &buffer) const
{
    const size_t limit = buffer.persistent() ? persistent_limit() : options_.memtable_bytes;
    return buffer.full || buffer.table->bytes() >= limit;
}

bool LsmStore::any_logged(size_t from) const
{
    return std::any_of(buffers_->begin() + static_cast<ptrdiff_t>(from), buffers_->end(),
                       [](const Buffer &b) { return b.log != nullptr; });
}

// Whether there may be one more. The first is about to be sealed.
bool LsmStore::may_begin_buffer() const
{
    if (options_.memtables == Memtables::merging)
        return buffers_->size() == 1 ||
               !is_over_budget(0); // the first is none that becomes a table
    if (options_.memtables == Memtables::key_lsm)
        return buffers_->size() < key_lsm_most;
    if (options_.memtables != Memtables::mutable_persistent || container_full_)
        return !any_logged(1);
    const bool next_is_logged = !any_logged(1) && buffers_->front().persistent();
    const auto persistent = std::count_if(buffers_->begin(), buffers_->end(),
                                          [](const Buffer &b) { return b.persistent(); });
    return next_is_logged || persistent < persistent_most;
}

void LsmStore::begin_buffer()
{
    Buffer next = next_buffer();
    next.first = last_sequence_ + 1;
    newest_log_ = std::max(newest_log_, next.log_number);
    change_buffers([&](Buffers &buffers) {
        if (!buffers.empty()) {
            buffers.front().sealed = true;
            buffers.front().last = last_sequence_;
        }
        buffers.insert(buffers.begin(), std::move(next));
    });
    want();
}

Buffer LsmStore::next_buffer()
{
    const bool is_mutable = options_.memtables == Memtables::mutable_persistent;
    if (!has_logs())
        return persistent_buffer();
    if (is_mutable && any_logged(0) && !container_full_)
        try {
            return persistent_buffer();
        } catch (const Error &error) {
            if (error.code().value() != ENOSPC)
                throw;
            container_full_ = true; // until some of it has been freed
        }
    if (!ready_)
        return logged_buffer(next_number_++);
    Buffer ready = std::move(*ready_);
    ready_.reset();
    return ready;
}

Buffer LsmStore::logged_buffer(uint64_t number) const
{
    Buffer buffer;
    buffer.table = std::make_shared<Memtable>(options_.memtable_bytes / filter_share);
    buffer.log = std::make_shared<Log>(log_path(number));
    buffer.log_number = number;
    sync_directory(places_.directory);
    return buffer;
}

Buffer LsmStore::persistent_buffer()
{
    const size_t limit = persistent_limit();
    Buffer buffer;
    buffer.table =
        container_->begin(last_sequence_ + 1, limit == SIZE_MAX ? 0 : limit / filter_share);
    return buffer;
}

void LsmStore::change_buffers(const std::function<void(Buffers &)> &change)
{
    auto next = std::make_shared<Buffers>(*buffers_);
    change(*next);
    buffers_ = std::move(next);
    eras_.push_back({++era_, last_sequence_, buffers_});
}

// A memtable that has just left buffers_. The keeper lets it go when nobody reads it.
void LsmStore::retire(Buffer buffer, std::shared_ptr<const void> filter)
{
    old_buffers_.push_back({std::move(buffer), std::move(filter), era_});
}

std::string LsmStore::log_path(uint64_t number) const
{
    return numbered_path(places_.directory, number, "log");
}

} // namespace lsm
