// Reads one state of the address space. The numbers are those of ftl.hpp.
#include "nvmkv/ftl.hpp"

#include <algorithm>
#include <iterator>

namespace nvmkv
{

// Whether no change after the snapshot has begun. Call it after reading the map: a thread that has seen a
// word of a change also sees that the change has started.
bool Ftl::Snapshot::undisturbed() const
{
    return latest_ || ftl_->started_.load(std::memory_order_acquire) == sequence();
}

// The present extents of the map. Changes at work may have added some and removed others.
void Ftl::collect(Range range, std::vector<Extent> &found) const
{
    const Extent *extent = map_->at_or_before(range.first);
    if (extent && meet(range_of(*extent), range))
        found.push_back(*extent);
    uint64_t from = range.first + 1;
    while ((extent = map_->at_or_after(from)) && extent->first < range.end()) {
        found.push_back(*extent);
        from = extent->first + 1;
    }
}

// Take back the changes after `sequence`, newest first (3). Their memory stays, since the caller has pinned
// the sequence.
void Ftl::undo_after(uint64_t sequence, Range range, std::vector<Extent> &found) const
{
    for (uint64_t s = started_.load(std::memory_order_acquire); s > sequence; s--) {
        const Change &change = *changes_[s % changes_max].load(std::memory_order_acquire);
        auto undo = std::ranges::partition_point(
            change.undos, [&](const Undo &u) { return u.range.end() <= range.first; });
        for (; undo != change.undos.end() && undo->range.first < range.end(); ++undo) {
            std::erase_if(found, [&](const Extent &e) { return meet(range_of(e), undo->range); });
            std::ranges::copy_if(undo->old, std::back_inserter(found),
                                 [&](const Extent &e) { return meet(range_of(e), range); });
        }
    }
    std::ranges::sort(found, {}, &Extent::first);
}

std::vector<Extent> Ftl::Snapshot::overlapping(Range range)
{
    std::vector<Extent> found;
    ftl_->collect(range, found);
    if (!undisturbed())
        ftl_->undo_after(sequence(), range, found);
    return found;
}

std::optional<Extent> Ftl::Snapshot::at_or_after(uint64_t sector)
{
    while (sector < sectors_end) {
        const Extent *extent = ftl_->map_->at_or_after(sector);
        if (undisturbed())
            return extent ? std::optional(*extent) : std::nullopt;
        // A later change may have added this extent, or removed an earlier one of the snapshot.
        const uint64_t end = extent ? extent->end() : sectors_end;
        for (const Extent &found : overlapping({sector, end - sector}))
            if (found.first >= sector)
                return found;
        sector = end;
    }
    return std::nullopt;
}

std::optional<Range> Ftl::Snapshot::mapped(uint64_t sector)
{
    std::optional<Range> found;
    for (const Extent &extent : overlapping({sector, 1}))
        found = Range{sector, extent.end() - sector};
    for (;;) {
        auto next = at_or_after(found ? found->end() : sector);
        if (!next || (found && next->first != found->end()))
            return found;
        found = found ? Range{found->first, next->end() - found->first} : range_of(*next);
    }
}

const std::string &Ftl::Snapshot::path() const
{
    return ftl_->path();
}

std::span<const char> Ftl::Snapshot::read(const Extent &extent)
{
    pin_.count(extent.count * sector_size);
    return data_of(extent);
}

Ftl::Snapshot Ftl::snapshot() const
{
    return {*this, readers_.enter(visible_), false};
}

Ftl::Snapshot Ftl::latest() const
{
    Snapshot snapshot = this->snapshot();
    snapshot.latest_ = true;
    return snapshot;
}

} // namespace nvmkv
