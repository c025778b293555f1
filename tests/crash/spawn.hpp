// Start a worker, kill it, and count what it said. And what else the judges share.
#ifndef TESTS_CRASH_SPAWN_HPP
#define TESTS_CRASH_SPAWN_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace crash
{

struct Outcome {
    bool ready;       // it came as far as opening its container
    uint64_t found;   // transactions that were in it then
    uint64_t commits; // that returned in this run
    int status;       // as wait(2) has it
};

// Run `arguments` (the program first) until it ends.
Outcome run(const std::vector<std::string> &arguments);

// Run it, wait until it is ready and so many commits have returned, kill it with SIGKILL `delay_us`
// later.
Outcome run_and_kill(const std::vector<std::string> &arguments, uint64_t commits,
                     unsigned delay_us);

// What the name of a worker that marks its stores ends in, in that mode; else nothing.
std::string suffix();

// A number from the environment, to repeat a run or to make it longer.
uint64_t from_environment(const char *name, uint64_t otherwise);

} // namespace crash

#endif
