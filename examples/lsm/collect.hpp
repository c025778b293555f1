// Collecting the garbage of value files (mode `key_lsm`).
//
// The manifest says what each table needs of each value file. What no table needs is garbage. To collect a
// file, its values that are needed are copied to a new one. Every table that has their addresses is written
// anew, in the same level, with the new addresses. The pairs and their order stay as they are. So snapshots
// and iterators are not concerned: whoever reads an old table keeps the old file.
//
// A value file has a small range of keys (ValueWriter). Files that are needed by the same tables are
// collected together, so few tables are written for much that is collected. (HashKV, Chan et al., USENIX ATC
// 2018, groups by hash. We group by range, for ours are in order.)
#ifndef EXAMPLES_LSM_COLLECT_HPP
#define EXAMPLES_LSM_COLLECT_HPP

#include "lsm/compaction.hpp"

#include <set>

namespace lsm
{

struct Collection {
    // With their levels, none of level 0.
    std::vector<std::pair<unsigned, std::shared_ptr<Table>>> tables;
    std::set<uint64_t> files;
};

struct ValueSpace {
    uint64_t files = 0, bytes = 0, needed = 0;
};

ValueSpace value_space(const Version &version, ValueFiles &files);

// What should be collected next; no value if at most `share` of all value files is garbage. About `at_once`
// bytes of values are copied, and are there twice meanwhile. `spared`: files that cannot be read. What a
// table of level 0 needs is left alone. It has no garbage; and if it had, a new table there would be taken
// for a newer one.
std::optional<Collection> next_collection(const Version &version, ValueFiles &files, double share,
                                          uint64_t at_once, const std::set<uint64_t> &spared);

// Copy, and return the edit that puts new tables in the place of the old ones; none if it was stopped. The
// new value files are gone if `values` is not kept. If it fails while it reads a value, `reading` is the
// number of the value's file, else 0.
std::optional<Edit> collect_values(const Collection &what, const Works &works, ValueWriter &values,
                                   uint64_t &reading);

} // namespace lsm

#endif
