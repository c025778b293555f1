// A walk through sorted pairs: of a memtable, a block, a table, a level, or several of them merged.
#ifndef EXAMPLES_LSM_CURSOR_HPP
#define EXAMPLES_LSM_CURSOR_HPP

#include "lsm/key.hpp"
#include "lsm/lsm.hpp"

#include <memory>
#include <vector>

namespace lsm
{

// As lsm::Iterator, but keys have their tags. Moving may throw lsm::Error.
using Cursor = Iterator;

using Cursors = std::vector<std::unique_ptr<Cursor>>;

// All pairs of these cursors, in order. A step is linear in the number of cursors. There are few: two
// memtables, the tables of level 0, and the other levels.
std::unique_ptr<Cursor> merged(Cursors cursors);

} // namespace lsm

#endif
