// The newest writes, sorted, in memory: a skip list (Pugh, CACM 1990).
//
//     index node   sizes | pointer to the value | tower | key
//     value        somewhere else in the same memory
//
// Invariants
//   1. One thread inserts at a time. Any number may read meanwhile, without a lock.
//   2. A node lies where it lies, and only its tower changes. A pointer in a tower leads to a complete node:
//      it is stored with release, and loaded with acquire.
//   3. If a node is linked at a level, it is linked at all levels below.
//   4. Nodes leave a list only while its version is odd. Who searched meanwhile searches again.
#ifndef EXAMPLES_LSM_MEMTABLE_HPP
#define EXAMPLES_LSM_MEMTABLE_HPP

#include "lsm/cursor.hpp"
#include "lsm/filter.hpp"
#include "lsm/memory.hpp"

#include <mutex>
#include <optional>

namespace lsm
{

class Memtable
{
  public:
    struct Node;

    // An empty one in ordinary memory. `filter_bytes`: of the filter of its keys; 0: none.
    explicit Memtable(size_t filter_bytes = 0);
    virtual ~Memtable() = default;
    Memtable(const Memtable &) = delete;

    void add(Sequence sequence, Kind kind, std::string_view key, std::string_view value);

    // The two halves of add(), for many nodes that shall be there together. make() throws Error if
    // there is no room. link() returns false if this version is there already.
    Node *make(std::string_view key, std::string_view value); // the key has its tag
    bool link(Node *node);
    void release(Node *node); // never linked
    static unsigned height(const Node *node); // link() stores to at most so many others
    static constexpr unsigned height_max = 12; // good for 16 million nodes

    // The newest version of a key that `sequence` may see; no value if there is none. Valid as long as
    // the memtable.
    struct Found {
        Kind kind;
        std::string_view value;
    };
    std::optional<Found> get(std::string_view user_key, Sequence sequence) const;
    bool may_have(std::string_view user_key) const
    {
        return filter_.load(std::memory_order_acquire)->may_have(user_key);
    }

    std::unique_ptr<Cursor> cursor() const; // it must be gone before the memtable
    size_t bytes() const { return memory_->bytes(); }
    bool empty() const;

    // For memory that outlives the memtable: make an empty list, and free the first nodes of a list. The
    // rest stays a list. free_first() returns how many there were, `most` at most. Nobody may be reading.
    // warm_first() brings to the cache what it needs.
    static Node *make_head(Memory &memory);
    static unsigned free_first(Memory &memory, Node *head, unsigned most);
    static void warm_first(const Node *head, unsigned most);

    bool has_filter() const { return filter_.load(std::memory_order_relaxed)->has_bytes(); }

    // Make a filter of this size for the keys that are there. Nobody may be inserting.
    // Returns the filter before it, which readers may still ask.
    std::shared_ptr<const void> renew_filter(size_t bytes);

    // Bring to the cache what a move of the first `count` nodes of `newer` to this list needs.
    void warm(const Memtable &newer, unsigned count) const;

    // Move nodes from the front of `newer` to `older`, whose versions are all older, until about `most` have
    // moved. Versions that no read at `oldest` or later can see go to the front of `grave`. Readers look at
    // `newer` first, and cursors search anew after each call. `moves` counts the calls. (pointer_merge.cpp)
    static void move_nodes(Memtable &newer, Memtable &older, Memtable &grave, Sequence oldest,
                           unsigned most, std::atomic<uint64_t> &moves);

  protected:
    Memtable(std::unique_ptr<Memory> memory, Node *head, size_t filter_bytes);

  private:
    friend class MemtableCursor;
    class Moving;

    template <class Search> Node *steady(uint64_t &seen, Search search) const;
    std::shared_ptr<GrowingFilter> take_filter(std::shared_ptr<GrowingFilter> filter);
    void link_behind(Node *const *before, Node *node);
    void unlink(Node *const *before, Node *node);
    void bury(Node *node, Memtable &from);
    unsigned draw_height();
    Node *first_from(std::string_view key, Node **before) const;

    // A finger is where a search has ended: at each level the last node before its key. It begins at the
    // list's head. Go on to a key that is not before that one. If it is near, this takes few steps.
    Node *go_on(std::string_view key, Node **finger) const;

    Node *last() const;
    Node *before(const Node *node) const;

    std::unique_ptr<Memory> memory_;
    Node *head_;
    std::atomic<unsigned> height_;
    uint64_t random_ = 0x9e3779b97f4a7c15;
    std::atomic<GrowingFilter *> filter_;
    std::shared_ptr<GrowingFilter> owned_filter_;
    std::atomic<uint64_t> version_{0};
    mutable std::mutex moving_; // held while the version is odd
};

} // namespace lsm

#endif
