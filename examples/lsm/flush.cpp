// What becomes of full memtables: a table of level 0, or part of a larger one in the container. In mode
// `key_lsm` values are written to value files, in the order of their keys, and the table gets their
// addresses.
//
// The oldest goes first, so that tables of level 0 are in order. A memtable in the container that takes
// others stays until it is full.
#include "lsm/store.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <unistd.h>
#include <utility>

namespace lsm
{
namespace
{

constexpr unsigned move_at_once = 100; // nodes of one commit
constexpr size_t value_files_a_memtable = 4;

} // namespace

bool LsmStore::flush_step()
{
    Buffer full;
    {
        std::lock_guard guard(lock_);
        full = buffers_->back();
        const bool none_persistent = newest_persistent(*buffers_) == buffers_->end();
        const bool moves = full.log && !full.full &&
                           none_persistent && // else the last opening chose another way
                           options_.memtables == Memtables::immutable_persistent;
        const bool stays = options_.memtables == Memtables::merging && full.persistent() &&
                           !full.full && !draining_ && !is_over_budget(0);
        if (!full.sealed || full.busy || moves || stays || broken_)
            return false;
        change_buffers([](Buffers &buffers) { buffers.back().busy = true; });
    }
    try {
        ValueWriter values = value_writer();
        Edit edit;
        edit.log = full.log ? full.log_number + 1 : 0;
        edit.last_sequence = full.last;
        if (!full.table->empty())
            edit.added.emplace_back(0, write_table(*full.table, values));
        install(std::move(edit), &values, [&] {
            change_buffers([](Buffers &buffers) { buffers.pop_back(); });
            retire(full);
            if (full.persistent())
                full.persistent()->set_unneeded();
        });
    } catch (...) {
        std::lock_guard guard(lock_);
        change_buffers([](Buffers &buffers) { buffers.back().busy = false; });
        throw;
    }
    if (full.log)
        unlink(log_path(full.log_number).c_str());
    full = {}; // so that the keeper may have the last
    std::lock_guard guard(lock_);
    want();
    return true;
}

ValueWriter LsmStore::value_writer()
{
    return ValueWriter(places_.directory, options_.memtable_bytes / value_files_a_memtable,
                       [this] { return new_number(); });
}

// Where a table of a level goes.
TablePlace LsmStore::place_of(unsigned level)
{
    std::lock_guard guard(lock_);
    if (level < levels_in_container(*version_, table_budget()))
        return TablePlace::container;
    return level < options_.fast_levels ? TablePlace::fast : TablePlace::directory;
}

TableInfo LsmStore::write_table(const Memtable &memtable, ValueWriter &values)
{
    const TablePlace place = place_of(0);
    const bool apart = options_.memtables == Memtables::key_lsm;
    Sequence oldest;
    {
        std::lock_guard guard(lock_);
        oldest = oldest_snapshot();
    }
    TableBuilder builder(storage_, new_number(), place, options_);
    Versions versions(oldest);
    auto from = memtable.cursor();
    for (from->seek_to_first(); from->valid(); from->next()) {
        const std::string_view key = from->key(), value = from->value();
        if (versions.are_hidden(key))
            continue;
        if (apart && value.size() >= apart_min)
            builder.add(tagged(user_key(key), sequence_of(key), Kind::address),
                        values.append(value).text());
        else
            builder.add(key, value);
    }
    values.finish();
    NewTables made(storage_);
    made.add(builder.finish());
    return made.take().front();
}

// On a full disk there may be no room for a log. Then all the more the rest must be done.
bool LsmStore::keep_ready_step()
{
    bool any = let_go();
    std::exception_ptr error;
    try {
        any |= prepare_log();
    } catch (...) {
        error = std::current_exception();
    }
    any |= move_step() || free_step() || merge_lists_step();
    if (error && !any)
        std::rethrow_exception(error);
    return any;
}

bool LsmStore::free_step()
{
    {
        std::lock_guard guard(lock_);
        if (broken_) // perhaps by a commit that failed
            return false;
    }
    if (!container_ || !container_->free_some())
        return false;
    std::lock_guard guard(lock_);
    container_full_ = false;
    room_came();
    return true;
}

void LsmStore::room_came()
{
    if (std::exchange(awaits_room_, false))
        want();
}

void LsmStore::drop_eras()
{
    while (eras_.front().buffers.expired())
        eras_.pop_front();
    std::atomic_thread_fence(std::memory_order_acquire); // what their readers did came before
}

bool LsmStore::is_unread(const Old &old)
{
    drop_eras();
    return old.era <= eras_.front().number;
}

// Delete what nobody uses any more.
bool LsmStore::let_go()
{
    std::vector<Old> buffers;
    Tables tables;
    {
        std::lock_guard guard(lock_);
        const auto old =
            std::partition(old_buffers_.begin(), old_buffers_.end(), [&](const Old &o) {
                return !is_unread(o) || o.buffer.table.use_count() > 1;
            });
        for (auto at = old; at != old_buffers_.end(); ++at)
            buffers.push_back(std::move(*at));
        old_buffers_.erase(old, old_buffers_.end());
        lets_go_ = !buffers.empty();
        const auto unused = std::partition(old_tables_.begin(), old_tables_.end(),
                                           [](const auto &table) { return table.use_count() > 1; });
        std::move(unused, old_tables_.end(), std::back_inserter(tables));
        old_tables_.erase(unused, old_tables_.end());
    }
    const bool any = !buffers.empty() || !tables.empty();
    buffers.clear();
    tables.clear();
    std::lock_guard guard(lock_);
    lets_go_ = false;
    if (any)
        room_came(); // perhaps on the disk
    return any;
}

// Make the next memtable with a log, so that no writer waits for the file system.
bool LsmStore::prepare_log()
{
    uint64_t number;
    {
        std::lock_guard guard(lock_);
        if (ready_ || !has_logs())
            return false;
        number = next_number_++;
    }
    Buffer buffer = logged_buffer(number);
    std::lock_guard guard(lock_);
    if (number < newest_log_)
        unlink(log_path(number).c_str()); // a writer was faster, and logs are used in order
    else
        ready_ = std::move(buffer);
    return true;
}

// Move the oldest memtable that has a log to the one below it, or seal that one.
bool LsmStore::move_step()
{
    Buffer from, to;
    try {
        if (!choose_move(from, to))
            return false;
        if (from.table)
            move(from, *to.persistent());
    } catch (const Error &error) {
        if (error.code().value() != ENOSPC)
            throw;
        return make_way(from.log_number);
    }
    if (!from.table)
        return true;
    const uint64_t log = from.log_number;
    {
        std::lock_guard guard(lock_);
        change_buffers([&](Buffers &buffers) {
            auto at = std::find_if(buffers.begin(), buffers.end(),
                                   [&](const Buffer &b) { return b.table == from.table; });
            (at + 1)->last = at->last;
            buffers.erase(at);
        });
        retire(std::move(from));
        changed_.notify_all();
        want();
    }
    unlink(log_path(log).c_str());
    return true;
}

// Choose a memtable, and the one below into which it moves; if there is none, begin it. No memtable: the one
// below was full, and has been sealed.
bool LsmStore::choose_move(Buffer &from, Buffer &to)
{
    std::lock_guard guard(lock_);
    if (options_.memtables != Memtables::immutable_persistent || broken_)
        return false;
    const auto below = newest_persistent(*buffers_);
    const auto index = below - buffers_->begin();
    const bool takes = below != buffers_->end() && !below->sealed;
    const Buffer &next = *(below - 1);
    if (takes && (is_full(*below) || (draining_ && !next.sealed))) {
        change_buffers(
            [&](Buffers &buffers) { buffers[static_cast<size_t>(index)].sealed = true; });
        want();
        return true;
    }
    if (!next.sealed || next.full || (!takes && buffers_->end() - below > 1))
        return false; // the last: else the container gets too large
    from = next;
    if (takes) {
        to = *below;
        return true;
    }
    to.first = from.first;
    to.last = to.first - 1;
    to.table = container_->begin(to.first, 0);
    change_buffers([&](Buffers &buffers) { buffers.insert(buffers.begin() + index, to); });
    return true;
}

// The container has no room. Let the memtable there become a table, or if there is none, this one. False: it
// does already.
bool LsmStore::make_way(uint64_t log)
{
    std::lock_guard guard(lock_);
    bool any = false;
    change_buffers([&](Buffers &buffers) {
        auto below = newest_persistent(buffers);
        if (below != buffers.end()) {
            any = !std::exchange(below->sealed, true);
            return;
        }
        for (Buffer &buffer : buffers)
            if (buffer.log_number == log)
                any = !std::exchange(buffer.full, true);
    });
    want();
    return any;
}

// Every step leaves a state from which the move can begin again: nodes that are there are passed over. The
// log is synced first. Else a power failure could keep writes here and lose earlier ones there.
void LsmStore::move(const Buffer &from, PersistentMemtable &to)
{
    try {
        from.log->sync();
    } catch (...) {
        std::lock_guard guard(lock_);
        set_broken(std::current_exception());
        throw;
    }
    auto at = from.table->cursor();
    at->seek_to_first();
    std::vector<Memtable::Node *> made;
    while (at->valid()) {
        Container::Hold hold(to.container());
        made.clear();
        try {
            size_t links = 0;
            for (; made.size() < move_at_once && at->valid(); at->next()) {
                made.push_back(to.make(at->key(), at->value()));
                links += Memtable::height(made.back());
            }
            to.reserve(links);
        } catch (...) {
            for (Memtable::Node *node : made)
                to.release(node);
            throw;
        }
        for (Memtable::Node *node : made)
            if (!to.link(node))
                to.release(node);
        to.commit(to.last(), false);
    }
    Container::Hold hold(to.container());
    to.commit(from.last, false);
}

} // namespace lsm
