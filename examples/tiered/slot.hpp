// A slot: a field's value, or the reference to it. A record has a slot for each field that is long, or that
// may change its tier. All other fields lie in the record themselves.
#ifndef EXAMPLES_TIERED_SLOT_HPP
#define EXAMPLES_TIERED_SLOT_HPP

#include "tiered/tier.hpp"

namespace tiered
{

enum : uint8_t { tier_none = 0, tier_dram = 1, tier_pm = 2, tier_disk = 3, tier_first_of_user = 4 };

constexpr size_t tiers_max = 16;

/// `pm`: the value's address, or the value itself if it has 8 bytes at most. Elsewhere: its place.
struct slot {
    uint64_t where = 0;
    uint64_t sum = 0; // XXH3 of the value, unless it is in the container
    uint32_t length = 0;
    uint8_t tier = tier_none; // none: never set, and reads as empty

    bool operator==(const slot &) const = default;
};

constexpr size_t slot_inline_max = sizeof(uint64_t);

} // namespace tiered

#endif
