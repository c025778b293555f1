// Threads of which one runs at a time. A thread hands over where it would block, and where the medium
// takes its time. A seed decides which thread is next. So a program with threads does the same in every
// run.
//
// The linker redirects the library's waiting to us (hooks.cpp): mutexes, condition variables, its own
// locks, sched_yield(2), fdatasync(2).
#ifndef PM_SIM_THREADS_HPP
#define PM_SIM_THREADS_HPP

#include <cstdint>
#include <functional>

namespace sim
{

// Run `count` threads, each with its number, until all have returned. Rethrows the first thread's
// exception, if any failed.
void run_threads(unsigned count, uint64_t seed, const std::function<void(unsigned)> &body);

// True if the caller is one of these threads.
bool in_thread();

// Let other threads go on. A thread that cannot go on itself must call yield_blocked().
void yield();
void yield_blocked();

} // namespace sim

#endif
