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

// Explore each, and report on standard output. False at the first violation, or if there were fewer
// distinct states than that.
bool explore(const std::vector<Run> &runs, uint64_t states_min = 0);

// The setups of a mode: `ci` within minutes, `quick` a little of each, for slow builds. No two of
// them, and of no two modes or seeds, are the same program.
std::vector<Run> plan(const std::string &name, const std::string &mode, uint64_t seed);

// How many distinct states `ci` must explore in a mode. In all modes together 200,000.
uint64_t states_demanded(const std::string &mode);

// All setups of a mode again and again with new seeds, from `seed` on, until the time is over.
bool soak(const std::string &mode, uint64_t seed, double minutes);

} // namespace simulation

#endif
