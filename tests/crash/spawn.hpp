// Start a worker, kill it, and count what it said.
#ifndef TESTS_CRASH_SPAWN_HPP
#define TESTS_CRASH_SPAWN_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace crash
{

struct Outcome {
    bool killed;      // by us; else it ended by itself, which it must not
    uint64_t commits; // that returned in this run
};

// Run `arguments` (the program first), wait until it is ready, kill it with SIGKILL `delay_us`
// later.
Outcome run_and_kill(const std::vector<std::string> &arguments, unsigned delay_us);

} // namespace crash

#endif
