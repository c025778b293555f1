/* Elapsed time. steady_clock costs about 25 ns, so time loops, not operations. */
#pragma once

#include <chrono>

namespace bench
{

/** Nanoseconds that `work()` takes. */
template <class Work> double elapsed_ns(Work &&work)
{
    auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
        .count();
}

} // namespace bench
