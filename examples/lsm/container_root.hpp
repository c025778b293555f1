// What a container has, and what persistent.cpp and pieces.cpp need to change it.
#ifndef EXAMPLES_LSM_CONTAINER_ROOT_HPP
#define EXAMPLES_LSM_CONTAINER_ROOT_HPP

#include "lsm/persistent.hpp"

#include <cerrno>

namespace lsm
{

struct Container::List {
    Memtable::Node *head;
    uint64_t bytes;
    Sequence first, last;
    bool synced;
    List *older;
};

// Bytes that never change: a table, or an edit of the manifest. They are an object of their own, to which
// nobody stores. So under the log engine a large one is nowhere but in the file.
struct Container::Piece {
    Piece *next, *previous;
    uint64_t number; // of a table; 0 of an edit
    uint64_t size;
    void *bytes;

    std::string_view text() const { return {static_cast<const char *>(bytes), size}; }
};

struct Container::Root {
    uint64_t id;
    bool claimed;
    List *newest;
    // From here on: not in containers of before `key_lsm`, until they are opened for the first time.
    Piece *tables;                 // in any order
    Piece *first_edit, *last_edit; // of the manifest, if CURRENT says that it is here
    uint64_t max_bytes;            // of the container; 0: nobody knows
};

inline void demand(int result)
{
    if (result != 0)
        throw Error(errno, pm_errormsg());
}

inline void announce_stores(const void *at, size_t bytes)
{
    demand(pm_dirty(at, bytes));
}

inline void *allocate_in(pm_container *container, size_t bytes)
{
    void *at = pm_malloc(container, bytes);
    demand(at ? 0 : -1);
    return at;
}

} // namespace lsm

#endif
