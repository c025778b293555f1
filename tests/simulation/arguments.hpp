// What `simulate` is asked to do: on its command line, and in files with lines like that.
#ifndef TESTS_SIMULATION_ARGUMENTS_HPP
#define TESTS_SIMULATION_ARGUMENTS_HPP

#include "simulation/run.hpp"

namespace simulation
{

struct Arguments {
    Run run;                // of a plan or a list only mode and seed
    std::string plan, list; // "": none
    double minutes = 0;     // of the plan `soak`
};

// Fills in `arguments`. If they make no sense, or if help was asked for, it prints that; the result
// is what to exit with then.
std::optional<int> parse(int argc, char **argv, Arguments &arguments);

// The runs of a file in one mode: it has commands as command() makes them, one a line, and other
// lines in between. Throws if one makes no sense, and if there is none.
std::vector<Run> read_list(const std::string &path, const std::string &mode);

} // namespace simulation

#endif
