// Where the parts of a store lie. The file PLACES of its directory says so, a line each, if there is more
// than the directory itself:
//
//     memtables MODE         enum Memtables, as the last opening chose
//     container ID PATH      the memtables in persistent memory
//     fast PATH              tables of the upper levels
//
// The store finds them by this file. Whoever moves one of them changes the line.
#ifndef EXAMPLES_LSM_PLACES_HPP
#define EXAMPLES_LSM_PLACES_HPP

#include "lsm/lsm.hpp"

#include <cstdint>
#include <string>

namespace lsm
{

struct Places {
    std::string directory;     // of the store
    std::string fast;          // directory of tables; empty: none
    std::string container;     // path, perhaps relative to the directory; empty: none
    uint64_t container_id = 0; // of its creation
    Memtables memtables = Memtables::dram;

    std::string container_path() const
    {
        return container.starts_with('/') ? container : directory + "/" + container;
    }
    const std::string &of_tables(bool are_fast) const { return are_fast ? fast : directory; }

    static Places read(const std::string &directory); // EBADMSG if a line makes no sense
    void write() const;                               // as `replace` of file.hpp
    bool operator==(const Places &) const = default;
};

} // namespace lsm

#endif
