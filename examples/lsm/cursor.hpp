// A walk through sorted pairs: of a memtable, a block, a table, a level, or several of them merged.
#ifndef EXAMPLES_LSM_CURSOR_HPP
#define EXAMPLES_LSM_CURSOR_HPP

#include "lsm/key.hpp"
#include "lsm/lsm.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace lsm
{

// As lsm::Iterator, but keys have their tags. Moving may throw lsm::Error.
using Cursor = Iterator;

using Cursors = std::vector<std::unique_ptr<Cursor>>;

// All pairs of these cursors, in order. A step is linear in the number of cursors. There are few: memtables,
// the tables of level 0, and the other levels. `moves`, if it is not NULL, changes before pairs move from the
// part of one cursor to that of a later one.
std::unique_ptr<Cursor> merged(Cursors cursors, const std::atomic<uint64_t> *moves = nullptr);

} // namespace lsm

#endif
