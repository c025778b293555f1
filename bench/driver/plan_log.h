#pragma once

#include "driver/plan.h"

namespace bench
{

/** The part `log`: the log engine's cleaner, and the workloads of its paper. */
std::vector<Plan::Command> log_commands(const Plan &plan, size_t repetition,
                                        const Plan::Directories &directories);

} // namespace bench
