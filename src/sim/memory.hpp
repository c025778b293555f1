// What a power failure may leave of files, at one moment.
//
// A file is a row of *units*: cache lines of 64 bytes on pmem, sectors of 512 on an ordinary file.
// Of each unit there is the contents that are certainly durable, its *floor*, and the versions that
// it has had since: any of them may be on the medium, since a cache line is evicted, and a page of
// the page cache is written, whenever the machine likes. A line may also be torn at 8-byte words;
// a sector is whole.
//
//   change          a unit has a new version
//   queue           its newest version is to be durable with the next fence
//   fence           what was queued becomes the floor: versions before it are gone
//   begin_sync      fdatasync(2) begins: of everything the newest version is queued
//   sync            it ends: what was queued becomes the floor. What was written meanwhile may be
//                   there or not
//
// The same goes for each file's size.
//
// Invariants
//  M1  A unit is dirty if and only if it has a version besides its floor. The last one is the
//      newest.
//  M2  Bytes of versions belong to somebody who lives longer: a recording, or its explorer.
#ifndef PM_SIM_MEMORY_HPP
#define PM_SIM_MEMORY_HPP

#include <cstdint>
#include <cstring>
#include <vector>

namespace sim
{

enum class Kind { PMEM, FILE };

constexpr uint32_t unit_bytes(Kind kind)
{
    return kind == Kind::PMEM ? 64 : 512;
}

struct Image; // crash.hpp

// A unit of one of the files.
using Unit = uint32_t;
constexpr unsigned UNIT_BITS = 24;

constexpr Unit unit_of(uint32_t file, uint64_t number)
{
    return file << UNIT_BITS | (Unit)number;
}

constexpr uint32_t file_of(Unit unit)
{
    return unit >> UNIT_BITS;
}

constexpr uint32_t number_of(Unit unit)
{
    return unit & ((1u << UNIT_BITS) - 1);
}

// Contents of a unit at some place. Zero for zeros, so that files of different length compare.
uint64_t unit_hash(Unit unit, const char *bytes, uint32_t size);

struct Version {
    const char *bytes;
    uint64_t hash;
};

struct Dirty {
    Unit unit;
    uint32_t first;                // number of versions[0]; the floor's is 0 when it gets dirty
    std::vector<Version> versions; // the floor is not among them
    const Version &newest() const { return versions.back(); }
};

class Memory
{
  public:
    // Everything durable: `files`, contents.
    void start(Kind kind, const std::vector<std::vector<char>> &files);
    // Everything durable: what a power failure left.
    void start(const Memory &before, const Image &image);
    // As it was, after the death of the process: what was queued is no more certain than the rest.
    void start(const Memory &before);

    void change(Unit unit, const char *bytes, uint64_t hash);
    void queue(Unit first, uint32_t count);
    void fence();
    void begin_sync(uint32_t file);
    void sync(uint32_t file);
    void resize(uint32_t file, uint64_t size);
    void sync_size(uint32_t file);

    Kind kind() const { return kind_; }
    uint32_t bytes() const { return unit_bytes(kind_); }
    uint32_t files() const { return (uint32_t)floor_.size(); }
    bool clean() const;
    const std::vector<Dirty> &dirty() const { return dirty_; }
    const std::vector<uint64_t> &sizes(uint32_t file) const { return sizes_[file]; }
    const char *floor_of(uint32_t file) const { return floor_[file].data(); }
    const char *floor(Unit unit) const
    {
        return floor_[file_of(unit)].data() + (uint64_t)number_of(unit) * bytes();
    }
    const char *newest(Unit unit) const;
    uint64_t floor_hash() const { return floor_hash_; }
    // Of floor and all versions: what may happen from here on.
    uint64_t whole_hash() const;

  private:
    struct Queued {
        Unit unit;
        uint32_t version;
    };
    static constexpr uint32_t NONE = UINT32_MAX;

    uint32_t &slot(Unit unit) { return slots_[file_of(unit)][number_of(unit)]; }
    char *floor_at(Unit unit) { return const_cast<char *>(floor(unit)); }
    void settle(Unit unit, uint32_t version);
    void set_floor(Unit unit, const Version &version);

    Kind kind_ = Kind::PMEM;
    std::vector<std::vector<char>> floor_; // as long as the longest size that is possible
    std::vector<std::vector<uint64_t>> sizes_;
    std::vector<std::vector<uint32_t>> slots_; // a unit's place among the dirty, or NONE
    std::vector<Dirty> dirty_;
    std::vector<Queued> queued_;
    std::vector<size_t> synced_sizes_; // how many sizes were there when a sync began, by file
    uint64_t floor_hash_ = 0;
};

} // namespace sim

#endif
