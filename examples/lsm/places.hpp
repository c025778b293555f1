// Where the parts of a store lie. The file PLACES of its directory says so, a line each, if there is more
// than the directory itself:
//
//     memtables MODE         enum Memtables, as the last opening chose
//     container ID PATH      the memtables in persistent memory
//     fast ID PATH           tables of the upper levels
//
// The store finds them by this file. Whoever moves one of them changes the line. The numbers are random.
// The container and the fast directory have them too, and so has the manifest. So nothing of another store
// is taken for this one's, and a line that is missing is noticed.
#ifndef EXAMPLES_LSM_PLACES_HPP
#define EXAMPLES_LSM_PLACES_HPP

#include "lsm/lsm.hpp"

#include <cstdint>
#include <string>

namespace lsm
{

struct Places {
    std::string directory; // of the store
    std::string fast;      // directory of tables; empty: none
    std::string container; // path, perhaps relative to the directory; empty: none
    uint64_t container_id = 0, fast_id = 0;
    Memtables memtables = Memtables::dram;

    std::string container_path() const
    {
        return container.starts_with('/') ? container : directory + "/" + container;
    }

    static Places read(const std::string &directory); // EBADMSG if a line makes no sense
    void write() const;                               // as `replace` of file.hpp

    // Choose a number for the fast directory. EEXIST: it is another store's.
    void begin_fast();

    // Make it ours, now that PLACES and manifest have its number. EBADMSG: it is another store's.
    void claim_fast() const;

    bool operator==(const Places &) const = default;
};

} // namespace lsm

#endif
