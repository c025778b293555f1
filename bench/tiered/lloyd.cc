#include "tiered/kmeans.h"

#include <algorithm>

namespace bench
{

Kmeans::Kmeans()
{
    for (auto &of_dimension : centres_)
        for (size_t c = 0; c < clusters; c++)
            of_dimension[c] = double(c) + 0.5;
}

void Kmeans::add(std::span<const double, dimensions> point)
{
    std::array<double, clusters> distances{};
    for (size_t d = 0; d < dimensions; d++)
        for (size_t c = 0; c < clusters; c++)
            distances[c] += (point[d] - centres_[d][c]) * (point[d] - centres_[d][c]);
    const auto nearest = size_t(std::ranges::min_element(distances) - distances.begin());
    error_ += distances[nearest];
    counts_[nearest]++;
    for (size_t d = 0; d < dimensions; d++)
        sums_[d][nearest] += point[d];
}

void Kmeans::end_pass()
{
    for (size_t d = 0; d < dimensions; d++)
        for (size_t c = 0; c < clusters; c++)
            if (counts_[c] > 0)
                centres_[d][c] = sums_[d][c] / counts_[c];
    sums_ = {};
    counts_ = {};
    last_error_ = error_;
    error_ = 0;
}

} // namespace bench
