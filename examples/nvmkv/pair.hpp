// The layout of a pair in its sectors.
//
//     0    header, 32 bytes
//     32   key
//     ...  value, if all three fit into one sector; else the value begins with the second sector
//
// A tombstone is one sector with a header only. It says: no pair is here, but the search must go on.
#ifndef EXAMPLES_NVMKV_PAIR_HPP
#define EXAMPLES_NVMKV_PAIR_HPP

#include "nvmkv/ftl.hpp"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace nvmkv
{

constexpr size_t key_max = 128; // bytes

struct PairHeader {
    char magic[4];
    uint32_t pool;
    uint64_t hash; // of pool and key, all 64 bits
    uint32_t key_size;
    uint32_t flags; // PairFlags
    uint64_t value_size;
};
static_assert(sizeof(PairHeader) == 32 && sizeof(PairHeader) + key_max <= sector_size);

enum PairFlags : uint32_t {
    pair_passed = 1,    // a pair that belongs here has gone to a later place
    pair_tombstone = 2, // there is no pair here
};

constexpr char pair_magic[4] = {'N', 'V', 'K', 'V'};

/// Whether key and value share the first sector.
constexpr bool fits_one_sector(uint64_t key_size, uint64_t value_size)
{
    return value_size <= sector_size && sizeof(PairHeader) + key_size + value_size <= sector_size;
}

constexpr uint64_t pair_sectors(uint64_t key_size, uint64_t value_size)
{
    return fits_one_sector(key_size, value_size) ? 1
                                                 : 1 + (value_size + sector_size - 1) / sector_size;
}

constexpr uint64_t value_offset(uint64_t key_size, uint64_t value_size)
{
    return fits_one_sector(key_size, value_size) ? sizeof(PairHeader) + key_size : sector_size;
}

/// The bytes of a pair's sectors, for writing.
inline std::string pair_image(uint32_t pool, uint64_t hash, std::string_view key,
                              std::string_view value)
{
    std::string image(pair_sectors(key.size(), value.size()) * sector_size, '\0');
    PairHeader header{{}, pool, hash, static_cast<uint32_t>(key.size()), 0, value.size()};
    memcpy(header.magic, pair_magic, sizeof pair_magic);
    memcpy(image.data(), &header, sizeof header);
    memcpy(image.data() + sizeof header, key.data(), key.size());
    memcpy(image.data() + value_offset(key.size(), value.size()), value.data(), value.size());
    return image;
}

inline void set_flags(std::string &image, uint32_t flags)
{
    memcpy(image.data() + offsetof(PairHeader, flags), &flags, sizeof flags);
}

/// A pair in place. It is valid as long as the bytes that it was parsed from.
struct PairView {
    PairHeader header;
    std::string_view key, value;

    bool passed() const { return header.flags & pair_passed; }
    bool tombstone() const { return header.flags & pair_tombstone; }
    bool is(uint32_t pool, uint64_t hash, std::string_view other) const
    {
        return header.hash == hash && header.pool == pool && !tombstone() && key == other;
    }
};

/// False if the bytes are no pair.
inline bool parse_pair(std::span<const char> bytes, PairView &pair)
{
    PairHeader &header = pair.header;
    if (bytes.size() < sector_size)
        return false;
    memcpy(&header, bytes.data(), sizeof header);
    if (memcmp(header.magic, pair_magic, sizeof pair_magic) != 0 || header.key_size > key_max ||
        header.value_size > bytes.size() ||
        pair_sectors(header.key_size, header.value_size) * sector_size != bytes.size())
        return false;
    pair.key = {bytes.data() + sizeof header, header.key_size};
    pair.value = {bytes.data() + value_offset(header.key_size, header.value_size),
                  header.value_size};
    return true;
}

} // namespace nvmkv

#endif
