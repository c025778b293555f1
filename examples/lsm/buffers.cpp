// Which memtable comes next, and how it begins.
//
//     dram                   log, log, ...: the next when the one before is in a table
//     immutable_persistent   the same; and below them one in the container, into which they move
//     mutable_persistent     one with a log; while it is written to a table, one in the container
//     persistent_only        one in the container, for ever
#include "lsm/store.hpp"

#include <algorithm>

namespace lsm
{
namespace
{

constexpr ptrdiff_t persistent_most = 2; // memtables in the container

} // namespace

bool LsmStore::is_full(const Buffer &buffer) const
{
    if (buffer.full)
        return true;
    if (!buffer.persistent())
        return buffer.table->bytes() >= options_.memtable_bytes;
    return options_.memtables != Memtables::persistent_only &&
           buffer.table->bytes() >= options_.persistent_bytes;
}

// Whether there may be one more. The first is about to be sealed.
bool LsmStore::may_begin_buffer() const
{
    const bool any_logged = std::any_of(buffers_->begin() + 1, buffers_->end(),
                                        [](const Buffer &b) { return b.log != nullptr; });
    if (options_.memtables != Memtables::mutable_persistent)
        return !any_logged;
    const bool next_is_logged = !any_logged && buffers_->front().persistent();
    const auto persistent = std::count_if(buffers_->begin(), buffers_->end(),
                                          [](const Buffer &b) { return b.persistent(); });
    return next_is_logged || persistent < persistent_most;
}

void LsmStore::begin_buffer()
{
    bool any_logged = false;
    for (const Buffer &buffer : *buffers_)
        any_logged |= buffer.log != nullptr;
    Buffer next;
    if (options_.memtables == Memtables::persistent_only ||
        (options_.memtables == Memtables::mutable_persistent && any_logged)) {
        next = persistent_buffer();
    } else if (ready_) {
        next = std::move(*ready_);
        ready_.reset();
    } else {
        next = logged_buffer(next_number_++);
    }
    next.first = last_sequence_ + 1;
    change_buffers([&](Buffers &buffers) {
        if (!buffers.empty()) {
            buffers.front().sealed = true;
            buffers.front().last = last_sequence_;
        }
        buffers.insert(buffers.begin(), std::move(next));
    });
    want();
}

// Whether the background is about to give back room in the container.
bool LsmStore::may_get_room() const
{
    const bool any_old = std::any_of(old_buffers_.begin(), old_buffers_.end(), [](const Buffer &b) {
        return b.persistent() && b.table.use_count() == 1;
    });
    return container_ && (buffers_->size() > 1 || any_old || container_->has_unneeded());
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
    const bool is_bounded = options_.memtables != Memtables::persistent_only;
    Buffer buffer;
    buffer.table = container_->begin(last_sequence_ + 1,
                                     is_bounded ? options_.persistent_bytes / filter_share : 0);
    return buffer;
}

void LsmStore::change_buffers(const std::function<void(Buffers &)> &change)
{
    auto next = std::make_shared<Buffers>(*buffers_);
    change(*next);
    buffers_ = std::move(next);
}

std::string LsmStore::log_path(uint64_t number) const
{
    return numbered_path(places_.directory, number, "log");
}

} // namespace lsm
