/* What one repetition of the part `tiered` runs. */
#pragma once

#include "driver/plan.h"

namespace bench
{

std::vector<Plan::Command> tiered_commands(const Plan &plan, size_t repetition,
                                           const Plan::Directories &directories);

} // namespace bench
