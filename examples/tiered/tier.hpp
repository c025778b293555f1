// A tier: where values can be stored. libpm's container is the tier `pm`. The others have this interface:
// memory of this run, a directory, or what a user brings along (options::tiers).
//
// A tier knows a value by its place: extent << 32 | offset. An extent is whatever the tier can discard as a
// whole: a file, for instance. The container counts the bytes of each extent that references lead to. The
// counts change with the transaction. So after a crash the store knows exactly which extents it needs.
#ifndef EXAMPLES_TIERED_TIER_HPP
#define EXAMPLES_TIERED_TIER_HPP

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>

namespace tiered
{

using bytes = std::span<const std::byte>;

constexpr uint32_t extent_of(uint64_t place)
{
    return static_cast<uint32_t>(place >> 32);
}

/// Functions may throw; tiered::error is best. Several threads call them at once: the program's, the store's
/// own, and the one that makes a backup.
class tier
{
  public:
    virtual ~tier() = default;

    /// The first call. A store needs these extents; all others are left over from a crash. A new extent's
    /// number must be greater than all of these.
    virtual void keep(const std::set<uint32_t> &extents) = 0;

    /// Store a value, and return its place. It can be read at once, and survives a crash after sync().
    /// ENOSPC: the next tier of the field is tried.
    virtual uint64_t set(bytes value) = 0;

    /// Read a whole value. False: it was lost when the process died, which only a volatile tier may say.
    virtual bool get(uint64_t place, std::span<std::byte> value) = 0;

    virtual void sync() {}

    /// True if values go with the process. keep() then needs the last extent only, as slots still name it.
    virtual bool is_volatile() const { return false; }

    /// No reference leads to this value any more. (After a crash this call may be missing.)
    virtual void free(uint64_t place) { (void)place; }

    /// No reference leads to any value of this extent any more.
    virtual void discard(uint32_t extent) = 0;

    /// The bytes that an extent takes, if no more values come to it; else 0. When references lead to less
    /// than half of these bytes, the store moves those values elsewhere, and discards the extent.
    virtual uint64_t full_bytes(uint32_t extent) const = 0;

    /// Add a copy of all values to a backup, durably. No extent is discarded meanwhile.
    virtual void copy(const std::filesystem::path &directory) { (void)directory; }

    /// Where a value of this field lies, for messages.
    virtual std::string name_of(uint64_t place) const = 0;
};

/// Values that last as long as the process. A field that lost its value reads as if it had never been set.
std::shared_ptr<tier> make_memory_tier();

/// Values in append-only files in a directory of their own, which it makes. A file that nobody needs is
/// deleted. One sync for all values set since the last.
std::shared_ptr<tier> make_file_tier(const std::filesystem::path &directory);

} // namespace tiered

#endif
