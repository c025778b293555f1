// Compaction: which tables are merged next, and the merge.
#ifndef EXAMPLES_LSM_COMPACTION_HPP
#define EXAMPLES_LSM_COMPACTION_HPP

#include "lsm/version.hpp"

#include <functional>

namespace lsm
{

constexpr size_t level0_merge = 4; // tables of level 0 from which they are merged

struct Compaction {
    unsigned level;      // the upper one; the result goes to the next
    Tables upper, lower; // all tables of the lower level that the upper ones overlap
};

// What should be merged next; no value if each level is small enough. `cursors` has for each level the
// key where the last compaction of it ended, so that compactions go round.
std::optional<Compaction> next_compaction(const Version &version, const Options &options,
                                          std::array<std::string, levels> &cursors);

// Of all of a level.
Compaction whole_level(const Version &version, unsigned level);

// Write the merged tables, and return the edit that puts them in the place of the old ones. `oldest` is
// the number of the oldest snapshot: what no snapshot sees is dropped. `stop` is asked now and then; if
// it is true, there is no edit. If it fails, there is no new table.
std::optional<Edit> merge(const Compaction &what, const Version &version, Sequence oldest,
                          const Places &places, const Options &options,
                          const std::function<uint64_t()> &new_number,
                          const std::function<bool()> &stop);

} // namespace lsm

#endif
