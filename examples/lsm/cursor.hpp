// A walk through sorted pairs: of a memtable, a block, a table, a level, or several of them merged.
#ifndef EXAMPLES_LSM_CURSOR_HPP
#define EXAMPLES_LSM_CURSOR_HPP

#include "lsm/key.hpp"

#include <memory>
#include <vector>

namespace lsm
{

// Keys have their tags. key() and value() need valid(), and live until the cursor moves. Moving may throw
// lsm::Error. One thread uses a cursor.
class Cursor
{
  public:
    virtual ~Cursor() = default;
    virtual bool valid() const = 0;
    virtual void seek_to_first() = 0;
    virtual void seek(std::string_view key) = 0; // to the first pair that is not before `key`
    virtual void next() = 0;
    virtual std::string_view key() const = 0;
    virtual std::string_view value() const = 0;
};

using Cursors = std::vector<std::unique_ptr<Cursor>>;

// All pairs of these cursors, in order. A step is linear in the number of cursors. There are few: two
// memtables, the tables of level 0, and the other levels.
std::unique_ptr<Cursor> merged(Cursors cursors);

} // namespace lsm

#endif
