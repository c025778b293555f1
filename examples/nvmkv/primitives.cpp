// Implements the primitives of table 4.2 with snapshots and Ftl::submit().
#include "nvmkv/ftl.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace nvmkv
{

// ---- Reading

void Ftl::atomic_read(std::span<const Read> reads)
{
    Snapshot snapshot = this->snapshot();
    for (const Read &read : reads) {
        const Range range = check_whole(read.first, read.buffer.size());
        memset(read.buffer.data(), 0, read.buffer.size());
        for (const Extent &extent : snapshot.overlapping(range)) {
            const uint64_t first = std::max(extent.first, range.first);
            const uint64_t end = std::min(extent.end(), range.end());
            memcpy(read.buffer.data() + (first - range.first) * sector_size,
                   snapshot.read(extent).data() + (first - extent.first) * sector_size,
                   (end - first) * sector_size);
        }
    }
}

void Ftl::read(uint64_t first, std::span<char> buffer)
{
    atomic_read(std::array{Read{first, buffer}});
}

std::vector<bool> Ftl::atomic_exists(std::span<const uint64_t> sectors)
{
    Snapshot snapshot = this->snapshot();
    std::vector<bool> exist;
    for (uint64_t sector : sectors)
        exist.push_back(!snapshot.overlapping(check_range({sector, 1})).empty());
    return exist;
}

bool Ftl::exists(uint64_t sector)
{
    return atomic_exists(std::array{sector})[0];
}

std::vector<Range> Ftl::range_exist(Range range)
{
    Snapshot snapshot = this->snapshot();
    std::vector<Range> mapped;
    for (const Extent &extent : snapshot.overlapping(check_range(range))) {
        const uint64_t first = std::max(extent.first, range.first);
        const uint64_t end = std::min(extent.end(), range.end());
        if (!mapped.empty() && mapped.back().end() == first)
            mapped.back().count += end - first;
        else
            mapped.push_back({first, end - first});
    }
    return mapped;
}

std::optional<Range> Ftl::iterate(uint64_t sector)
{
    return sector < sectors_end ? snapshot().mapped(sector) : std::nullopt;
}

std::vector<Range> Ftl::cond_range_read(Range range, std::span<char> buffer)
{
    Snapshot snapshot = this->snapshot();
    std::vector<Range> copied;
    for (const Extent &extent : snapshot.overlapping(check_range(range))) {
        const uint64_t first = std::max(extent.first, range.first);
        const uint64_t count =
            std::min(std::min(extent.end(), range.end()) - first, buffer.size() / sector_size);
        if (count == 0)
            break;
        memcpy(buffer.data(), snapshot.read(extent).data() + (first - extent.first) * sector_size,
               count * sector_size);
        buffer = buffer.subspan(count * sector_size);
        if (!copied.empty() && copied.back().end() == first)
            copied.back().count += count;
        else
            copied.push_back({first, count});
    }
    return copied;
}

// ---- Changing

void Ftl::atomic_write(std::span<const Write> writes)
{
    std::vector<Replacement> change;
    for (const Write &write : writes)
        change.push_back({write.range(), write});
    wait(*submit(change));
}

bool Ftl::cond_atomic_write(std::span<const Write> writes)
{
    std::vector<Replacement> change;
    for (const Write &write : writes)
        change.push_back({write.range(), write});
    std::optional<Ticket> ticket = submit(change, true);
    if (ticket)
        wait(*ticket);
    return ticket.has_value();
}

void Ftl::atomic_ptrim(std::span<const Range> ranges)
{
    std::vector<Replacement> change;
    for (const Range &range : ranges)
        change.push_back({range, {}});
    wait(*submit(change));
}

void Ftl::write(uint64_t first, std::span<const char> data)
{
    atomic_write(std::array{Write{first, data}});
}

void Ftl::trim(Range range)
{
    show(submit(std::array{Replacement{range, {}}})->sequence);
}

void Ftl::ptrim(Range range)
{
    constexpr size_t extents_at_once = 256;
    check_range(range);
    std::optional<Ticket> last;
    for (uint64_t from = range.first, to = from; from < range.end(); from = to) {
        {
            Snapshot snapshot = this->snapshot();
            for (size_t i = 0; i < extents_at_once && to < range.end(); i++) {
                auto extent = snapshot.at_or_after(to);
                to = std::min(extent ? extent->end() : range.end(), range.end());
            }
        }
        last = submit(std::array{Replacement{{from, to - from}, {}}});
    }
    wait(*last);
}

void Ftl::batch(std::span<const Write> writes)
{
    std::optional<Ticket> last;
    try {
        for (const Write &write : writes)
            last = submit(std::array{Replacement{write.range(), write}});
    } catch (...) {
        if (last)
            wait(*last);
        throw;
    }
    if (last)
        wait(*last);
}

} // namespace nvmkv
