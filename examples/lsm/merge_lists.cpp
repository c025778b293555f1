// Which lists in the container are merged by pointer, and when (mode `merging`).
//
// A list has the level of its size: 0 of a memtable, and one more for each doubling. If a list has the
// level of the next older one, or a higher one, the two are merged. So there are few lists of each level.
// All pairs take steps in turn, and each step is a commit. The container has one transaction, so more
// threads would gain nothing.
//
// If the store is closed in the middle, or dies, both lists are there, and readers find all. They count as
// two lists again.
#include "lsm/store.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace lsm
{
namespace
{

constexpr size_t filter_min = 64; // bytes

} // namespace

// What no read at this sequence number or a later one can see, nobody sees any more. A get notes no snapshot,
// but pins buffers_, and looks for no write that was too new then.
Sequence LsmStore::oldest_read()
{
    drop_eras();
    return std::min(oldest_snapshot(), eras_.front().since);
}

// Whether the lists have more bytes than they may, when they get `more`.
bool LsmStore::is_over_budget(size_t more) const
{
    for (const Buffer &buffer : *buffers_)
        more += buffer.persistent() ? buffer.table->bytes() : 0;
    return more > budget_;
}

// The container is full. Let the oldest list become a table, and wait until that has given back some room.
// False: there is nothing more to give back. `freed`: Container::times_freed() before the write that failed.
bool LsmStore::wait_for_lists(Guard &guard, const Error &error, uint64_t freed)
{
    const bool has_lists =
        options_.memtables == Memtables::merging || options_.memtables == Memtables::key_lsm;
    if (!has_lists || error.code().value() != ENOSPC || broken_)
        return false;
    starves_ = true;
    const bool frees = is_freeing();
    if (!frees && buffers_->size() == 1) {
        // A worker may have freed some since the write failed, or be about to let go what it has read itself.
        wait_for_rest(guard, {flusher, keeper});
        return container_->times_freed() != freed || is_freeing() || buffers_->size() > 1;
    }
    if (!frees)
        change_buffers([](Buffers &buffers) { buffers.back().full = true; });
    wait_for_background(guard, {flusher, keeper});
    return true;
}

// Whether the container will have more room soon.
bool LsmStore::is_freeing()
{
    return lets_go_ || container_->is_freeing() ||
           std::any_of(old_buffers_.begin(), old_buffers_.end(),
                       [&](const Old &o) { return is_unread(o); }) ||
           std::any_of(old_tables_.begin(), old_tables_.end(),
                       [](const auto &t) { return t.use_count() == 1; });
}

// Change both lists of a pair, whose newer one is given.
template <class Change> void LsmStore::change_pair(const Buffer &newer, Change change)
{
    std::lock_guard guard(lock_);
    change_buffers([&](Buffers &buffers) {
        const auto at = std::find_if(buffers.begin(), buffers.end(),
                                     [&](const Buffer &b) { return b.table == newer.table; });
        change(buffers, at);
    });
    changed_.notify_all();
    want();
}

// The next pair, which is busy from now on.
std::optional<std::pair<Buffer, Buffer>> LsmStore::choose_lists()
{
    std::lock_guard guard(lock_);
    const auto level = [&](const Buffer &b) {
        return std::bit_width(b.table->bytes() / options_.memtable_bytes);
    };
    const auto is_idle = [](const Buffer &b) {
        return b.persistent() && b.sealed && !b.busy && !b.full;
    };
    if (draining_ || starves_ || broken_)
        return {};
    // The oldest is about to become a table.
    const size_t end = buffers_->size() - is_over_budget(options_.memtable_bytes);
    for (size_t i = end; i-- > 1;) {
        const std::pair pair((*buffers_)[i - 1], (*buffers_)[i]);
        const auto &[newer, older] = pair;
        if (!is_idle(newer) || !is_idle(older) || level(newer) < level(older))
            continue;
        change_buffers([&](Buffers &buffers) { buffers[i - 1].busy = buffers[i].busy = true; });
        return pair;
    }
    return {};
}

// The filter of the older list was made for fewer keys.
void LsmStore::begin_merge(const Buffer &newer, const Buffer &older)
{
    try {
        const auto grave = container_->begin(1, 0);
        grave->set_unneeded();
        change_pair(newer, [&](Buffers &, auto at) { at->grave = grave; });
        renew_filter(older, newer.table->bytes() + older.table->bytes());
    } catch (...) {
        give_up_merge(newer);
        throw;
    }
}

void LsmStore::renew_filter(const Buffer &buffer, size_t bytes)
{
    auto old = buffer.table->renew_filter(std::max(bytes / filter_share, filter_min));
    std::lock_guard guard(lock_);
    change_buffers([](Buffers &) {}); // who reads from now on does not ask the old one
    retire({}, std::move(old));
}

// They are two lists again. The grave must wait as below.
void LsmStore::give_up_merge(const Buffer &newer)
{
    change_pair(newer, [&](Buffers &, auto at) {
        at->grave.reset();
        at->busy = (at + 1)->busy = false;
    });
    std::lock_guard guard(lock_);
    if (newer.grave)
        retire({.table = newer.grave});
}

// Readers may still stand in the newer list, and in the grave.
void LsmStore::end_merge(const Buffer &newer)
{
    change_pair(newer, [&](Buffers &buffers, auto at) {
        (at + 1)->busy = false;
        (at + 1)->last = at->last;
        buffers.erase(at);
    });
    newer.persistent()->set_unneeded();
    std::lock_guard guard(lock_);
    retire(newer);
}

// A step of every pair. False: there is none, or the container has no room for one.
bool LsmStore::merge_lists_step()
{
    if (options_.memtables != Memtables::merging)
        return false;
    try {
        return merge_lists();
    } catch (const Error &error) {
        if (error.code().value() != ENOSPC)
            throw;
        std::lock_guard guard(lock_);
        starves_ = true; // until a write has found room
        return false;
    }
}

bool LsmStore::merge_lists()
{
    while (auto pair = choose_lists())
        begin_merge(pair->first, pair->second);
    std::shared_ptr<const Buffers> buffers;
    Sequence oldest;
    {
        std::lock_guard guard(lock_);
        if (broken_)
            return false;
        buffers = buffers_;
        oldest = oldest_read();
    }
    for (const Buffer &found : *buffers) // the container has no filters
        if (found.persistent() && found.sealed && !found.table->has_filter())
            renew_filter(found, found.table->bytes());
    bool any = false;
    for (size_t i = 0; i < buffers->size(); i++) {
        const Buffer &newer = (*buffers)[i];
        if (!newer.grave)
            continue;
        any = true;
        try {
            if ((*buffers)[i + 1].persistent()->take_some(*newer.persistent(), *newer.grave,
                                                          oldest))
                end_merge(newer);
        } catch (...) {
            give_up_merge(newer);
            throw;
        }
    }
    return any;
}

} // namespace lsm
