/* Lloyd's algorithm, over points that somebody else has. */
#pragma once

#include "tiered/data.h"

#include <limits>
#include <span>

namespace bench
{

constexpr size_t clusters = 8, kmeans_iterations = 5;

/** `for_each(f)` calls f(std::span<const double, dimensions>) for every point. Returns the sum of the squared
 * distances of the last pass. */
template <class ForEach> double kmeans(ForEach for_each)
{
    std::array<Point, clusters> centres;
    for (size_t c = 0; c < clusters; c++)
        centres[c].fill(double(c) + 0.5);
    double error = 0;
    for (size_t i = 0; i < kmeans_iterations; i++) {
        std::array<Point, clusters> sums{};
        std::array<uint64_t, clusters> counts{};
        error = 0;
        for_each([&](std::span<const double, dimensions> point) {
            size_t nearest = 0;
            double least = std::numeric_limits<double>::infinity();
            for (size_t c = 0; c < clusters; c++) {
                double distance = 0;
                for (size_t d = 0; d < dimensions; d++)
                    distance += (point[d] - centres[c][d]) * (point[d] - centres[c][d]);
                if (distance < least) {
                    least = distance;
                    nearest = c;
                }
            }
            error += least;
            counts[nearest]++;
            for (size_t d = 0; d < dimensions; d++)
                sums[nearest][d] += point[d];
        });
        for (size_t c = 0; c < clusters; c++)
            for (size_t d = 0; d < dimensions && counts[c] > 0; d++)
                centres[c][d] = sums[c][d] / double(counts[c]);
    }
    return error;
}

} // namespace bench
