/* The paper's skew: 90 % of the updates are of 15 % of the values, which are scattered. */
#pragma once

#include "harness/random.h"

namespace bench
{

class Skewed
{
  public:
    explicit Skewed(uint64_t count) : count_(count) {}

    uint64_t operator()(Random &random) const
    {
        const uint64_t popular = count_ * 15 / 100;
        const uint64_t rank =
            random.below(10) < 9 ? random.below(popular) : popular + random.below(count_ - popular);
        return rank * factor % count_;
    }

  private:
    static constexpr uint64_t factor = 0x9e3779b1; // prime
    uint64_t count_;
};

} // namespace bench
