/* Elapsed time. steady_clock costs about 25 ns, so time loops, not operations. */
#pragma once

#include <chrono>
#include <time.h>

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

/** Nanoseconds of this thread's processor. Others may keep the processor from it, and that would be the slowest
 * piece of work. */
template <class Work> double processor_ns(Work &&work)
{
    timespec from{}, to{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    work();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return static_cast<double>(to.tv_sec - from.tv_sec) * 1e9 +
           static_cast<double>(to.tv_nsec - from.tv_nsec);
}

} // namespace bench
