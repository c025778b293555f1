// Where a key may be: the geometry of a store (invariants 1 to 3 of nvmkv.hpp).
#ifndef EXAMPLES_NVMKV_PLACES_HPP
#define EXAMPLES_NVMKV_PLACES_HPP

#include "nvmkv/pair.hpp"

#include <cstdint>
#include <string_view>

namespace nvmkv
{

constexpr unsigned probes_max = 8;

class Places
{
  public:
    Places(unsigned key_bits, unsigned value_bits) : key_bits_(key_bits), value_bits_(value_bits) {}

    /// FNV-1a over the pool's number and the key.
    static uint64_t hash(uint32_t pool, std::string_view key)
    {
        uint64_t hash = 0xcbf29ce484222325;
        auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
        for (unsigned shift = 0; shift < 32; shift += 8)
            add(pool >> shift & 0xff);
        for (char byte : key)
            add(static_cast<unsigned char>(byte));
        return hash;
    }

    /// The region of a key's place number `probe`. It is never region 0. The steps are triangular numbers,
    /// so that the eight places are all different.
    uint64_t region(uint64_t hash, unsigned probe) const
    {
        return 1 + (hash % (regions() - 1) + probe * (probe + 1) / 2) % (regions() - 1);
    }

    unsigned key_bits() const { return key_bits_; }
    unsigned value_bits() const { return value_bits_; }
    uint64_t regions() const { return UINT64_C(1) << key_bits_; }
    uint64_t region_sectors() const { return UINT64_C(1) << value_bits_; }
    uint64_t half() const { return region_sectors() / 2; }
    uint64_t end() const { return regions() << value_bits_; } // sectors

    uint64_t value_max() const { return half() * sector_size; } // bytes
    uint32_t pools_max() const { return half() - 1; }           // numbers of pools are below this
    uint64_t tombstone_offset() const { return half() - 1; }    // the number of no pool

    Range range(uint64_t region) const { return {region << value_bits_, region_sectors()}; }
    uint64_t region_of(uint64_t sector) const { return sector >> value_bits_; }
    uint64_t offset_of(uint64_t sector) const { return sector & (region_sectors() - 1); }

  private:
    unsigned key_bits_, value_bits_;
};

} // namespace nvmkv

#endif
