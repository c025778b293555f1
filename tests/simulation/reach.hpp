// What the allocator says is in use, against what can be reached from the root.
#ifndef TESTS_SIMULATION_REACH_HPP
#define TESTS_SIMULATION_REACH_HPP

#include <libpm.h>

#include <string>

namespace simulation
{

// What is wrong; empty if nothing. An object counts as reached if a word of a reached object is its
// address; so garbage may hide a leak, but nothing is called a leak that is none.
std::string check_reach(pm_container *c);

} // namespace simulation

#endif
