// A table gives each unit's place in the list of dirty units, so a change takes constant time. A queued
// version is known by its number. When it becomes the floor, older versions go, and newer versions stay.
//
// The hash of all floors is a XOR over the units, so it follows each change of a floor at once.
#include "sim/memory.hpp"

#include "sim/crash.hpp"
#include "sim/random.hpp"

#include <algorithm>
#include <xxhash.h>

namespace sim
{

static bool is_zero(const char *bytes, uint32_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

uint64_t unit_hash(Unit unit, const char *bytes, uint32_t size)
{
    return is_zero(bytes, size) ? 0 : XXH3_64bits_withSeed(bytes, size, unit);
}

void Memory::start(Kind kind, const std::vector<std::vector<char>> &files)
{
    kind_ = kind;
    floor_ = files;
    sizes_.assign(files.size(), {});
    slots_.resize(files.size());
    dirty_.clear();
    queued_.clear();
    floor_hash_ = 0;
    for (uint32_t f = 0; f < files.size(); f++) {
        sizes_[f] = {files[f].size()};
        uint64_t units = files[f].size() / bytes();
        slots_[f].assign(units, NONE);
        for (uint64_t u = 0; u < units; u++)
            floor_hash_ ^= unit_hash(unit_of(f, u), floor(unit_of(f, u)), bytes());
    }
}

void Memory::start(const Memory &before, const Image &image)
{
    kind_ = before.kind_;
    floor_.resize(before.files());
    sizes_.resize(before.files());
    slots_.resize(before.files());
    dirty_.clear();
    queued_.clear();
    floor_hash_ = image.floor_hash;
    for (uint32_t f = 0; f < files(); f++) {
        const char *from = before.floor_[f].data();
        floor_[f].assign(from, from + image.sizes[f]);
        sizes_[f] = {image.sizes[f]};
        slots_[f].assign(image.sizes[f] / bytes(), NONE);
    }
    for (const Image::Choice &c : image.choices)
        memcpy(floor_at(c.unit), c.version.bytes, bytes());
}

void Memory::start(const Memory &before)
{
    *this = before;
    queued_.clear();
}

const char *Memory::newest(Unit unit) const
{
    uint32_t at = slots_[file_of(unit)][number_of(unit)];
    return at == NONE ? floor(unit) : dirty_[at].newest().bytes;
}

void Memory::change(Unit unit, const char *bytes, uint64_t hash)
{
    uint32_t &at = slot(unit);
    if (at == NONE) {
        at = (uint32_t)dirty_.size();
        dirty_.push_back({unit, 1, {}});
    }
    dirty_[at].versions.push_back({bytes, hash});
}

void Memory::queue(Unit first, uint32_t count)
{
    for (Unit unit = first; unit < first + count; unit++) {
        uint32_t at = slot(unit);
        if (at != NONE)
            queued_.push_back({unit, dirty_[at].first + (uint32_t)dirty_[at].versions.size() - 1});
    }
}

void Memory::set_floor(Unit unit, const Version &version)
{
    char *to = floor_at(unit);
    floor_hash_ ^= unit_hash(unit, to, bytes()) ^ version.hash;
    memcpy(to, version.bytes, bytes());
}

// Make `version` the floor of a unit, and drop older versions.
void Memory::settle(Unit unit, uint32_t version)
{
    uint32_t at = slot(unit);
    if (at == NONE || version < dirty_[at].first)
        return; // it was queued twice
    Dirty &d = dirty_[at];
    uint32_t index = version - d.first;
    set_floor(unit, d.versions[index]);
    d.versions.erase(d.versions.begin(), d.versions.begin() + index + 1);
    d.first = version + 1;
    if (!d.versions.empty())
        return;
    slot(unit) = NONE;
    if (at + 1 != dirty_.size()) {
        std::swap(dirty_[at], dirty_.back());
        slot(dirty_[at].unit) = at;
    }
    dirty_.pop_back();
}

void Memory::fence()
{
    for (const Queued &q : queued_)
        settle(q.unit, q.version);
    queued_.clear();
}

void Memory::begin_sync(uint32_t file)
{
    for (const Dirty &d : dirty_)
        if (file_of(d.unit) == file)
            queued_.push_back({d.unit, d.first + (uint32_t)d.versions.size() - 1});
    synced_sizes_.resize(files());
    synced_sizes_[file] = sizes_[file].size();
}

void Memory::sync(uint32_t file)
{
    std::erase_if(queued_, [&](const Queued &q) {
        if (file_of(q.unit) == file)
            settle(q.unit, q.version);
        return file_of(q.unit) == file;
    });
    std::vector<uint64_t> &sizes = sizes_[file];
    sizes.erase(sizes.begin(), sizes.begin() + (ptrdiff_t)synced_sizes_[file] - 1);
}

void Memory::resize(uint32_t file, uint64_t size)
{
    sizes_[file].push_back(size);
    if (size > floor_[file].size()) {
        floor_[file].resize(size, 0);
        slots_[file].resize(size / bytes(), NONE);
    }
}

void Memory::sync_size(uint32_t file)
{
    sizes_[file] = {sizes_[file].back()};
}

bool Memory::clean() const
{
    return dirty_.empty() && std::all_of(sizes_.begin(), sizes_.end(),
                                         [](const auto &sizes) { return sizes.size() == 1; });
}

uint64_t Memory::whole_hash() const
{
    uint64_t hash = floor_hash_;
    for (const Dirty &d : dirty_)
        for (const Version &v : d.versions)
            hash += mix(v.hash + d.unit);
    for (const auto &sizes : sizes_)
        for (uint64_t size : sizes)
            hash = mix(hash + size);
    return hash;
}

} // namespace sim
