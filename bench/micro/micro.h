/*
 * The micro-benchmarks: what single steps cost, beside the bare mechanism or libpmemobj. Each
 * function does one repetition with all its peers side by side and emits the samples.
 */
#pragma once

#include "micro/mode.h"

#include <string>

namespace bench
{

void fault(const std::string &directory);
void allocate(const std::string &directory);
void chase(const std::string &directory);
void update(const std::string &directory);
void memory(const std::string &directory);
void recovery(const std::string &directory);
void elsewhere(const std::string &directory);

/** Processes that recovery() sees die: a container filled, some pages changed, never committed. */
void recovery_victim(const std::string &directory, const Mode &mode);
void recovery_victim_of_large_commit(const std::string &directory, const Mode &mode);

} // namespace bench
