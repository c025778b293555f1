/*
 * Randomness that is the same in every run and for every peer: std::shuffle and the distributions
 * may differ between standard libraries, these do not.
 */
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace bench
{

/** A bijection of the 64-bit integers that looks random (the finaliser of splitmix64). */
constexpr uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/** splitmix64. */
class Random
{
  public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t operator()() { return scramble(state_ += 0x9e3779b97f4a7c15U); }

    /** Below `bound`; the bias is far below what a benchmark can see. */
    uint64_t below(uint64_t bound)
    {
        return static_cast<uint64_t>((__uint128_t{(*this)()} * bound) >> 64);
    }

  private:
    uint64_t state_;
};

/** The numbers 0 to count-1 in random order. */
inline std::vector<uint32_t> permutation(uint32_t count, uint64_t seed)
{
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    Random random(seed);
    for (uint32_t left = count; left > 1; left--)
        std::swap(order[left - 1], order[random.below(left)]);
    return order;
}

} // namespace bench
