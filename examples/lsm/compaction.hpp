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

// What whoever writes tables needs of the store. `stop` is asked now and then. If it is true, no edit is
// wanted.
struct Works {
    const Storage &storage;
    const Options &options;
    std::function<uint64_t()> new_number;
    std::function<bool()> stop;
};

// Write the merged tables, and return the edit that puts them in the place of the old ones; none if it was
// stopped. `oldest` is the number of the oldest snapshot: what no snapshot sees is dropped. The new tables go
// to `place`. If it fails, there is no new table.
std::optional<Edit> merge(const Compaction &what, const Version &version, Sequence oldest,
                          TablePlace place, const Works &works);

// Walks through pairs in order, and tells which versions nobody needs. That is the second copy of a version.
// And it is a version of whose key the oldest snapshot sees a newer one, for then all do.
class Versions
{
  public:
    explicit Versions(Sequence oldest) : oldest_(oldest) {}
    bool are_hidden(std::string_view key); // the next
    bool is_new_key() const { return is_new_key_; }

  private:
    const Sequence oldest_;
    std::string key_;
    bool is_new_key_ = true, any_ = false;
    Sequence newer_ = sequence_max; // number of the version before, of the same key
};

} // namespace lsm

#endif
