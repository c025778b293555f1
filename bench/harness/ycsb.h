/*
 * The Yahoo! Cloud Serving Benchmark's mixes of operations and distributions of keys (Cooper et al.,
 * SoCC 2010), with its constants: zipfian with 0.99, after Gray et al., "Quickly Generating
 * Billion-Record Synthetic Databases", SIGMOD 1994; popular keys are scattered, or, for `latest`,
 * the newest.
 */
#pragma once

#include "harness/random.h"

#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace bench
{

/** Ranks below `count`, the lower the more frequent: P(i) ~ 1 / (i + 1)^0.99. */
class Zipfian
{
  public:
    explicit Zipfian(uint64_t count) : count_(count)
    {
        for (uint64_t i = 1; i <= count; i++)
            zeta_ += std::pow(1.0 / static_cast<double>(i), theta);
        const double zeta2 = 1 + std::pow(0.5, theta);
        eta_ = (1 - std::pow(2.0 / static_cast<double>(count), 1 - theta)) / (1 - zeta2 / zeta_);
    }

    uint64_t operator()(Random &random) const
    {
        const double u = static_cast<double>(random() >> 11) * 0x1p-53, uz = u * zeta_;
        if (uz < 1)
            return 0;
        if (uz < 1 + std::pow(0.5, theta))
            return 1;
        const double rank =
            static_cast<double>(count_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - theta));
        return std::min(static_cast<uint64_t>(rank), count_ - 1);
    }

  private:
    static constexpr double theta = 0.99;
    uint64_t count_;
    double zeta_ = 0, eta_;
};

struct Workload {
    char name;
    unsigned reads, updates, inserts, modifies; // percent; modify: read, then update
    bool latest;                                // else zipfian, scattered
    unsigned scans = 0;                         // percent; of 1 to 100 pairs
};

/** E needs a store that can scan. */
constexpr Workload workload_e = {'E', 0, 0, 5, 0, false, 95};

constexpr Workload workloads[] = {
    {'A', 50, 50, 0, 0, false}, {'B', 95, 5, 0, 0, false}, {'C', 100, 0, 0, 0, false},
    {'F', 50, 0, 0, 50, false}, {'D', 95, 0, 5, 0, true}, // the last, as it inserts
};

/** Which of the keys 0 to count - 1 is next. */
inline uint64_t choose(const Workload &workload, const Zipfian &zipfian, uint64_t count,
                       Random &random)
{
    const uint64_t rank = zipfian(random);
    return workload.latest ? count - 1 - rank : scramble(rank + 1) % count;
}

} // namespace bench
