#include "tiered/kmeans.h"

#include <experimental/simd>

namespace bench
{
namespace
{

namespace simd = std::experimental;

using Lanes = simd::fixed_size_simd<double, clusters>; // a value for each cluster

} // namespace

Kmeans::Kmeans()
{
    for (auto &of_dimension : centres_)
        for (size_t c = 0; c < clusters; c++)
            of_dimension[c] = double(c) + 0.5;
}

void Kmeans::add(std::span<const double, dimensions> point)
{
    Lanes distances = 0;
    for (size_t d = 0; d < dimensions; d++) {
        const Lanes difference = point[d] - Lanes(centres_[d].data(), simd::element_aligned);
        distances += difference * difference;
    }
    const double least = simd::hmin(distances);
    const auto nearest = size_t(simd::find_first_set(distances == least));
    error_ += least;
    counts_[nearest]++;
    for (size_t d = 0; d < dimensions; d++)
        sums_[nearest][d] += point[d];
}

void Kmeans::end_pass()
{
    for (size_t d = 0; d < dimensions; d++)
        for (size_t c = 0; c < clusters; c++)
            if (counts_[c] > 0)
                centres_[d][c] = sums_[c][d] / counts_[c];
    sums_ = {};
    counts_ = {};
    last_error_ = error_;
    error_ = 0;
}

} // namespace bench
