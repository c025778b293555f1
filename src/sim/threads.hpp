// Threads of which one runs at a time. It hands over where it would block and where the medium
// takes its time, to whom a seed decides: so a program with threads does the same in every run.
//
// The library's waiting comes to us by the linker (hooks.cpp): mutexes, condition variables, its
// own locks, sched_yield(2), fdatasync(2).
#ifndef PM_SIM_THREADS_HPP
#define PM_SIM_THREADS_HPP

#include <cstdint>
#include <functional>

namespace sim
{

// Run `count` threads, each with its number, until all have returned. Throws what the first that
// failed threw.
void run_threads(unsigned count, uint64_t seed, const std::function<void(unsigned)> &body);

// Whether the caller is one of them.
bool in_thread();

// Others may go on; those who cannot go on themselves must let them.
void yield();
void yield_blocked();

} // namespace sim

#endif
