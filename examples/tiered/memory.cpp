// The tier `dram`.
#include "tiered/tier.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tiered
{
namespace
{

constexpr uint64_t values_per_extent = 64;

class memory_tier : public tier
{
  public:
    void keep(const std::set<uint32_t> &extents) override
    {
        // Slots of an earlier run may still name these extents.
        next_ = extents.empty() ? 0 : (*extents.rbegin() + uint64_t(1)) * values_per_extent;
    }

    uint64_t set(bytes value) override
    {
        std::lock_guard guard(lock_);
        const uint64_t n = next_++, place = n / values_per_extent << 32 | n % values_per_extent;
        values_.emplace(place, std::vector<std::byte>(value.begin(), value.end()));
        return place;
    }

    bool get(uint64_t place, std::span<std::byte> value) override
    {
        std::lock_guard guard(lock_);
        const auto found = values_.find(place);
        if (found == values_.end() || found->second.size() != value.size())
            return false;
        std::ranges::copy(found->second, value.begin());
        return true;
    }

    void free(uint64_t place) override
    {
        std::lock_guard guard(lock_);
        values_.erase(place);
    }

    void discard(uint32_t) override {} // free() has done it

    uint64_t full_bytes(uint32_t) const override { return 0; } // free() has done it

    bool is_volatile() const override { return true; }

    std::string name_of(uint64_t) const override { return "memory"; }

  private:
    std::mutex lock_;
    uint64_t next_ = 0;
    std::unordered_map<uint64_t, std::vector<std::byte>> values_;
};

} // namespace

std::shared_ptr<tier> make_memory_tier()
{
    return std::make_shared<memory_tier>();
}

} // namespace tiered
