#include "nvmkv/pools.hpp"

#include "nvmkv/change.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace nvmkv
{
namespace
{

constexpr char magic[4] = {'N', 'V', 'K', 'P'};
constexpr size_t name_size = 64; // with at least one NUL

struct Record {
    char magic[4];
    uint32_t state;
    char name[name_size];
};

} // namespace

Pools::Pools(Ftl &ftl, uint32_t count)
    : ftl_(ftl), count_(count), generations_(new std::atomic<uint32_t>[count]())
{
    generations_[0] = 1;
    for (const Range &range : ftl.range_exist({1, count}))
        for (uint64_t pool = range.first; pool < std::min<uint64_t>(range.end(), count); pool++) {
            char sector[sector_size];
            Record record;
            ftl.read(pool, sector);
            memcpy(&record, sector, sizeof record);
            if (memcmp(record.magic, magic, sizeof magic) != 0 || record.name[name_size - 1] ||
                (record.state != alive && record.state != deleting))
                fail(EBADMSG, ftl.path() + ": the record of pool " + std::to_string(pool) +
                                  " is damaged; restore the file from a backup");
            const auto number = static_cast<uint32_t>(pool);
            if (record.state == deleting) {
                doomed_.push_back(number);
            } else {
                names_.emplace(record.name, number);
                generations_[number] = 1;
            }
        }
}

std::optional<uint32_t> Pools::find(std::string_view name) const
{
    auto found = names_.find(name);
    return found == names_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint32_t> Pools::free_number() const
{
    for (uint32_t pool = 1; pool < count_; pool++)
        if (!live(pool) && std::ranges::find(doomed_, pool) == doomed_.end())
            return pool;
    return std::nullopt;
}

Ftl::Ticket Pools::record(uint32_t pool, State state, std::string_view name)
{
    char sector[sector_size] = {};
    Record record{{}, state, {}};
    memcpy(record.magic, magic, sizeof magic);
    name.copy(record.name, name_size - 1);
    memcpy(sector, &record, sizeof record);
    return *ftl_.submit(std::array{Replacement{{pool, 1}, {pool, sector}}});
}

Ftl::Ticket Pools::create(uint32_t pool, std::string_view name)
{
    Ftl::Ticket ticket = record(pool, alive, name);
    names_.emplace(name, pool);
    generations_[pool]++;
    return ticket;
}

Ftl::Ticket Pools::doom(uint32_t pool)
{
    auto entry = std::ranges::find(names_, pool, [](const auto &named) { return named.second; });
    Ftl::Ticket ticket = record(pool, deleting, entry->first);
    names_.erase(entry);
    doomed_.push_back(pool);
    generations_[pool]++;
    return ticket;
}

Ftl::Ticket Pools::forget(uint32_t pool)
{
    Ftl::Ticket ticket = *ftl_.submit(std::array{Replacement{{pool, 1}, {}}});
    std::erase(doomed_, pool);
    return ticket;
}

} // namespace nvmkv
