// How long this machine's tiers take for an access.
#ifndef EXAMPLES_TIERED_PM_TIER_MEASURE_HPP
#define EXAMPLES_TIERED_PM_TIER_MEASURE_HPP

#include "placement.hpp"

namespace pm_tier
{

/// Measure dram, pm and disk; the latter two in stores that are made in these directories and deleted. About
/// five seconds. `disk` reads go to the medium, past the page cache, where the file system lets them.
std::vector<tier_cost> measure(const std::string &pm_directory, const std::string &disk_directory);

} // namespace pm_tier

#endif
