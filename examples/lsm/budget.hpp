// Which levels lie in the container (mode `key_lsm`), when tables there may have so many bytes in all.
//
// The upper levels do, as many as fit, and each whole. If the budget shrinks, tables of the deepest level go
// to the disk as they are, one a step. If it grows, they come back. But level 0 stays until it is merged with
// level 1. Its tables cannot have new numbers, which say what is newer.
#ifndef EXAMPLES_LSM_BUDGET_HPP
#define EXAMPLES_LSM_BUDGET_HPP

#include "lsm/compaction.hpp"

namespace lsm
{

uint64_t bytes_in_container(const Version &version);

// How many levels lie in the container, when all tables are where they should be.
unsigned levels_in_container(const Version &version, uint64_t budget);

// Whether tables of level 0 in the container are too many, so that they should be merged with level 1.
bool must_leave_level0(const Version &version, uint64_t budget);

// Copy one table to the place where it should be, and return the edit that says so; no value if all are
// there. None comes to the container unless `may_come`, which becomes false if there was no room for one.
std::optional<Edit> move_table(const Version &version, uint64_t budget, bool &may_come,
                               const Works &works);

} // namespace lsm

#endif
