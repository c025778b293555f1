// Memtables in persistent memory: skip lists in a libpm container. Opening maps them, and they are there.
// (NoveLSM, Kannan et al., USENIX ATC 2018, sections 4.1 to 4.4.) In mode `key_lsm`, tables and the manifest
// are there too.
//
// The container has one transaction. Whoever changes a memtable holds the container from the first
// change to the commit. Nobody makes more changes than a hundred nodes, or one group of writes. Readers
// need nothing: a node that is not committed has a sequence number that nobody looks for yet.
//
// Invariants
//   1. At a commit, every list is complete up to its `last`. Beyond it, it may have some nodes of a
//      memtable that is being moved here; the log of this memtable is still there, and durable.
//   2. A list whose `last` is in tables, or before its first write, is not needed. Its nodes are freed from
//      the front.
//   3. While a list takes the nodes of a newer one, it may have some beyond its `last` too. The newer list
//      has the others, and both are needed.
#ifndef EXAMPLES_LSM_PERSISTENT_HPP
#define EXAMPLES_LSM_PERSISTENT_HPP

#include "lsm/memtable.hpp"

#include <libpm.hpp>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace lsm
{

class PersistentMemtable;

class Container
{
  public:
    // Open the container, or make it as `creation` says: EEXIST if a store has claimed it.
    Container(const std::string &path, const Options *creation);

    uint64_t id() const; // random; of its creation
    uint64_t max_bytes() const; // which it never exceeds; 0: an earlier libpm made it
    void claim();        // PLACES of a store names it now

    // The memtables that it had when it was opened, in any order.
    std::vector<std::shared_ptr<PersistentMemtable>> memtables();

    // A new one, for writes from sequence number `first` on.
    std::shared_ptr<PersistentMemtable> begin(Sequence first, size_t filter_bytes);

    // Keep a table: it is durable when this returns. ENOSPC: nothing has changed.
    void add_table(uint64_t number, std::string_view bytes);
    std::string_view
    table(uint64_t number);           // EBADMSG: it is not there. It lives until drop_table()
    void drop_table(uint64_t number); // nobody reads it any more
    std::vector<uint64_t> tables();   // their numbers

    // The edits of a manifest, from old to new. They live until the next begin_edits().
    std::vector<std::string_view> edits() const;
    void append_edit(std::string_view edit); // as add_table()
    void begin_edits(std::string_view edit); // in the place of all that are there

    const std::string &path() const { return path_; }

    // Free some nodes of the lists that are not needed, or a table. False: there are none.
    bool free_some();
    bool is_freeing();             // some are left
    uint64_t times_freed() const { return times_freed_; }
    void check();                  // pm_check(); EBADMSG

    // Counts the times when nodes have moved from list to list.
    const std::atomic<uint64_t> &moves() const { return moves_; }

    uint64_t bytes_logged() const; // since the opening; values that go straight home are not logged

    // Hold the container. Threads take turns: a writer waits for one step of the background at most.
    class Hold
    {
      public:
        explicit Hold(Container &container) : container_(container)
        {
            std::lock_guard turn(container_.turn_);
            container_.lock_.lock();
        }
        ~Hold() { container_.lock_.unlock(); }
        Hold(const Hold &) = delete;

      private:
        Container &container_;
    };

  private:
    friend class PersistentMemtable;
    struct List;
    struct Piece;
    struct Root;
    class Nodes;

    void commit();
    void commit_links(); // before changes that a failure rolls back
    void roll_back();
    bool free_nodes(List *list);
    void enlarge_root();

    // pieces.cpp
    Piece *make_piece(uint64_t number, std::string_view bytes);
    template <class Change> void change(Change change);
    void find_tables();
    bool free_table();

    const std::string path_;
    std::mutex lock_, turn_; // who is to have lock_ next has turn_
    pm::container container_;
    Root *root_;
    bool has_links_ = false; // the open transaction may have linked nodes, on which readers stand
    std::atomic<uint64_t> moves_{0}, times_freed_{0};
    std::mutex unneeded_lock_;
    std::vector<List *> unneeded_; // and nobody reads them
    std::vector<uint64_t> unneeded_tables_;
    std::mutex tables_lock_;
    std::unordered_map<uint64_t, Piece *> tables_;
};

class PersistentMemtable final : public Memtable
{
  public:
    PersistentMemtable(Container &container, Container::List *list, size_t filter_bytes);
    ~PersistentMemtable() override; // frees its nodes if they are not needed, in time

    Container &container() const { return container_; }
    Sequence first() const;
    Sequence last() const;

    // Have room for the commit of what was made, when `links` pointers to it are stored. Throws ENOSPC.
    void reserve(size_t links);

    // Make what was linked since the last commit durable; the list is complete up to `last`. `synced`: a
    // write asked for `sync`. The caller holds the container. A failure leaves the transaction open.
    void commit(Sequence last, bool synced);

    // Take some nodes of `newer`, the list just before this one: see move_nodes(). True: they were the last.
    // Then this list has all its writes, and no later opening finds `newer`.
    bool take_some(PersistentMemtable &newer, PersistentMemtable &grave, Sequence oldest);

    void set_unneeded() { unneeded_ = true; } // tables have its contents, or another list
    void drop();                              // nothing has them, and nobody shall find them again
    bool synced() const;                      // a write asked for `sync`

  private:
    Container &container_;
    Container::List *list_;
    std::atomic<bool> unneeded_ = false;
};

} // namespace lsm

#endif
