// One exploration, or a plan of many.
#ifndef TESTS_SIMULATION_RUN_HPP
#define TESTS_SIMULATION_RUN_HPP

#include "simulation/subject.hpp"

namespace simulation
{

struct Run {
    Setup setup;
    sim::Plan plan{30, 4, 2, 2};
    std::vector<sim::Crash> crashes; // only these
};

// The command that does the same.
std::string command(const Run &run);

// What is being run now, with the crashes so far.
std::string current_command();

// A number that grows as it goes on.
uint64_t current_crashes();

// Explore each, and report on standard output. False at the first violation.
bool explore(const std::vector<Run> &runs);

// The setups of a mode: `ci` within minutes, `quick` a little of each, for slow builds.
std::vector<Run> plan(const std::string &name, const std::string &mode, uint64_t seed);

// All setups of a mode again and again with new seeds, from `seed` on, until the time is over.
bool soak(const std::string &mode, uint64_t seed, double minutes);

} // namespace simulation

#endif
