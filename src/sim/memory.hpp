// The states in which a power failure may leave files, at one moment.
//
// A file is a row of *units*: cache lines of 64 bytes on pmem, sectors of 512 on an ordinary file. Each
// unit has a *floor*, the contents that are certainly durable, and the versions that it has had since.
// Any of these may be on the medium. The machine evicts a cache line, and writes a page of the page
// cache, whenever it likes. A line may also be torn at 8-byte words; a sector is whole.
//
//   change          a unit has a new version.
//   queue           its newest version is to be durable with the next fence.
//   fence           queued versions become the floor, and older versions are gone.
//   begin_sync      fdatasync(2) begins: the newest version of everything is queued.
//   sync            fdatasync(2) ends: queued versions become the floor. Bytes written meanwhile may
//                   be there or not.
//
// The same holds for each file's size.
//
// Invariants
//  M1  A unit is dirty if and only if it has a version besides its floor. The last version is the
//      newest.
//  M2  The bytes of versions belong to an owner that lives longer: a recording, or its explorer.
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

// Hash of a unit's contents and place. Zero for a unit of zeros, so that files of different length can be
// compared.
uint64_t unit_hash(Unit unit, const char *bytes, uint32_t size);

struct Version {
    const char *bytes;
    uint64_t hash;
};

struct Dirty {
    Unit unit;
    uint32_t first;                // number of versions[0]; 1 when the unit gets dirty: the floor is 0
    std::vector<Version> versions; // without the floor
    const Version &newest() const { return versions.back(); }
};

class Memory
{
  public:
    // Begin with everything durable: `files` has the contents.
    void start(Kind kind, const std::vector<std::vector<char>> &files);
    // Begin with everything durable: the state that a power failure left.
    void start(const Memory &before, const Image &image);
    // Begin as before the death of the process. Queued versions become no more certain than others.
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
    // Hash of floor and all versions, which decide everything that may happen from here on.
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
    std::vector<std::vector<char>> floor_; // as long as the longest possible size
    std::vector<std::vector<uint64_t>> sizes_;
    std::vector<std::vector<uint32_t>> slots_; // a unit's index in dirty_, or NONE
    std::vector<Dirty> dirty_;
    std::vector<Queued> queued_;
    std::vector<size_t> synced_sizes_; // per file: number of sizes when a sync began
    uint64_t floor_hash_ = 0;
};

} // namespace sim

#endif
