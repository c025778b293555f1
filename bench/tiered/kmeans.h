/* Lloyd's algorithm, over points that somebody else has. */
#pragma once

#include "tiered/data.h"

#include <span>

namespace bench
{

constexpr size_t clusters = 8, kmeans_iterations = 5;

class Kmeans
{
  public:
    Kmeans();

    /** A function of its own, so that all peers run the same instructions. */
    [[gnu::noinline]] void add(std::span<const double, dimensions> point);

    void end_pass();

    /** The sum of the squared distances of the last pass. */
    double error() const { return last_error_; }

  private:
    std::array<std::array<double, clusters>, dimensions> centres_;
    std::array<Point, clusters> sums_{};
    std::array<double, clusters> counts_{};
    double error_ = 0, last_error_ = 0;
};

/** `for_each(f)` calls f(std::span<const double, dimensions>) for every point. */
template <class ForEach> double kmeans(ForEach for_each)
{
    Kmeans all;
    for (size_t i = 0; i < kmeans_iterations; i++) {
        for_each([&](std::span<const double, dimensions> point) { all.add(point); });
        all.end_pass();
    }
    return all.error();
}

} // namespace bench
