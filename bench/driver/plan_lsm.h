/* What one repetition of the part `lsm` runs. */
#pragma once

#include "driver/plan.h"

namespace bench
{

std::vector<Plan::Command> lsm_commands(const Plan &plan, size_t repetition,
                                        const Plan::Directories &directories);

} // namespace bench
