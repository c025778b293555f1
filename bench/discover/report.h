/* Samples of code that pmcc compiles for discovery, which had better not see the maps in JSON's headers. */
#pragma once

#include <cstdint>

namespace bench
{

/** emit() one. */
void report(const char *table, const char *row, const char *peer, double ns, uint64_t operations);

} // namespace bench
