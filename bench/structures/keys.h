#pragma once

#include "harness/random.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench
{

/** The keys a structure holds, and the choice of those to come and to go. */
class Keys
{
  public:
    explicit Keys(bool random) : random_(random) {}

    /** Keys never handed out before. */
    std::vector<uint64_t> fresh(size_t count)
    {
        std::vector<uint64_t> keys(count);
        for (uint64_t &key : keys)
            key = random_ ? scramble(++next_) : ++next_;
        held_.insert(held_.end(), keys.begin(), keys.end());
        return keys;
    }

    /** Keys to remove: any, or the lowest. */
    std::vector<uint64_t> victims(size_t count)
    {
        for (size_t i = 0; random_ && i < count; i++)
            std::swap(held_[i], held_[i + choice_.below(held_.size() - i)]);
        auto end = held_.begin() + static_cast<std::ptrdiff_t>(count);
        std::vector<uint64_t> keys(held_.begin(), end);
        held_.erase(held_.begin(), end);
        gone_.insert(gone_.end(), keys.begin(), keys.end());
        return keys;
    }

    /** Keys to look up: any, or in ascending order. */
    std::vector<uint64_t> some(size_t count)
    {
        std::vector<uint64_t> keys(count);
        for (size_t i = 0; i < count; i++)
            keys[i] = held_[random_ ? choice_.below(held_.size()) : i % held_.size()];
        return keys;
    }

    const std::vector<uint64_t> &held() const { return held_; }
    const std::vector<uint64_t> &gone() const { return gone_; }

  private:
    bool random_;
    uint64_t next_ = 0;
    Random choice_{1};
    std::vector<uint64_t> held_, gone_;
};

} // namespace bench
