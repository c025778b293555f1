// Keys as the store's parts have them: the user's key, then 8 bytes that say which version this is.
//
// Every write has a sequence number of its own. A snapshot is a sequence number too. It sees, of each key,
// the newest version up to this number. So versions of a key are in order from new to old.
#ifndef EXAMPLES_LSM_KEY_HPP
#define EXAMPLES_LSM_KEY_HPP

#include "lsm/bytes.hpp"

#include <algorithm>

namespace lsm
{

using Sequence = uint64_t; // 56 bits

constexpr Sequence sequence_max = (UINT64_C(1) << 56) - 1;

// `address`: the value is in a value file (values.hpp). Only tables have such.
enum class Kind : uint8_t { deletion = 0, value = 1, address = 2 };

constexpr size_t tag_bytes = 8;

inline uint64_t tag_of(Sequence sequence, Kind kind)
{
    return sequence << 8 | static_cast<uint8_t>(kind);
}

inline std::string tagged(std::string_view user_key, Sequence sequence, Kind kind)
{
    std::string key;
    key.reserve(user_key.size() + tag_bytes);
    key = user_key;
    put_fixed(key, tag_of(sequence, kind));
    return key;
}

// The version that a search for `sequence` finds first.
inline std::string search_key(std::string_view user_key, Sequence sequence)
{
    return tagged(user_key, sequence, Kind::address);
}

inline std::string_view user_key(std::string_view key)
{
    return key.substr(0, key.size() - tag_bytes);
}

inline uint64_t tag(std::string_view key)
{
    return fixed_at<uint64_t>(key.data() + key.size() - tag_bytes);
}

inline Sequence sequence_of(std::string_view key)
{
    return tag(key) >> 8;
}

inline Kind kind_of(std::string_view key)
{
    return static_cast<Kind>(tag(key) & 3);
}

// As memcmp(3), which takes longer to call than a short key to compare.
inline int compare_bytes(std::string_view a, std::string_view b)
{
    const size_t both = std::min(a.size(), b.size());
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= both; i += sizeof(uint64_t)) {
        const auto x = fixed_at<uint64_t>(a.data() + i), y = fixed_at<uint64_t>(b.data() + i);
        if (x != y)
            return __builtin_bswap64(x) < __builtin_bswap64(y) ? -1 : 1;
    }
    const int order = i < both ? memcmp(a.data() + i, b.data() + i, both - i) : 0;
    return order ? order : a.size() < b.size() ? -1 : a.size() > b.size();
}

// By the user's key, then from new to old.
inline int compare(std::string_view a, std::string_view b)
{
    int order = compare_bytes(user_key(a), user_key(b));
    return order ? order : tag(a) > tag(b) ? -1 : tag(a) < tag(b);
}

} // namespace lsm

#endif
