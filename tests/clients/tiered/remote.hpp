// A tier of the user's own: values in a map that outlives the store, as a server would have them.
#ifndef TESTS_TIERED_REMOTE_HPP
#define TESTS_TIERED_REMOTE_HPP

#include <tiered/error.hpp>
#include <tiered/tier.hpp>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <vector>

class Remote : public tiered::tier
{
  public:
    void keep(const std::set<uint32_t> &extents) override
    {
        std::erase_if(values, [&](const auto &one) { return !extents.contains(one.first); });
        next_ = extents.empty() ? 1 : *extents.rbegin() + 1;
    }
    uint64_t set(tiered::bytes value) override
    {
        std::lock_guard guard(lock_);
        values[next_].assign(value.begin(), value.end());
        return uint64_t(next_++) << 32;
    }
    bool get(uint64_t place, std::span<std::byte> value) override
    {
        std::lock_guard guard(lock_);
        const auto found = values.find(tiered::extent_of(place));
        if (found == values.end())
            throw tiered::error(EBADMSG, "the server has no such value");
        std::ranges::copy(found->second, value.begin());
        return true;
    }
    void discard(uint32_t extent) override
    {
        std::lock_guard guard(lock_);
        values.erase(extent);
    }
    uint64_t full_bytes(uint32_t) const override { return 0; }
    std::string name_of(uint64_t place) const override
    {
        return "remote value " + std::to_string(tiered::extent_of(place));
    }

    std::map<uint32_t, std::vector<std::byte>> values;

  private:
    std::mutex lock_;
    uint32_t next_ = 1;
};

#endif
