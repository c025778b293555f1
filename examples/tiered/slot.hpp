// A slot: a field's value, or the reference to it. A record has a slot for each field that is long, or that
// may change its tier. All other fields lie in the record themselves.
#ifndef EXAMPLES_TIERED_SLOT_HPP
#define EXAMPLES_TIERED_SLOT_HPP

#include "tiered/tier.hpp"

namespace tiered
{

enum : uint8_t { tier_none = 0, tier_dram = 1, tier_pm = 2, tier_disk = 3, tier_first_of_user = 4 };

constexpr size_t tiers_max = 16;
constexpr size_t slot_inline_max = 12;
constexpr size_t value_bytes_max = (1 << 28) - 1;

/// A value in the container that has at most 12 bytes lies in the slot itself, from its first byte on.
struct slot {
    uint64_t where = 0; // `pm`: the value's address; elsewhere its place
    uint32_t sum = 0;   // sum_of() a value that is elsewhere
    uint32_t length : 28 = 0;
    uint32_t tier : 4 = tier_none; // none: never set, and reads as empty

    bool operator==(const slot &) const = default;
    /// Of a value in the container. Not const, for a new value of the same length is written in its place.
    void *value() const
    {
        return length <= slot_inline_max ? const_cast<slot *>(this)
                                         : reinterpret_cast<void *>(where);
    }
};

static_assert(sizeof(slot) == 16);

} // namespace tiered

#endif
