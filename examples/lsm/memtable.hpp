// The newest writes, sorted, in memory: a skip list (Pugh, CACM 1990) in memory that only grows.
//
// Invariants
//   1. One thread inserts at a time. Any number may read meanwhile, without a lock.
//   2. A node never moves or changes, but for its tower. A pointer in a tower leads to a complete node: it
//      is stored with release, and loaded with acquire.
//   3. If a node is linked at a level, it is linked at all levels below.
#ifndef EXAMPLES_LSM_MEMTABLE_HPP
#define EXAMPLES_LSM_MEMTABLE_HPP

#include "lsm/cursor.hpp"

#include <atomic>
#include <optional>

namespace lsm
{

class Memtable
{
  public:
    Memtable();
    ~Memtable();
    Memtable(const Memtable &) = delete;

    void add(Sequence sequence, Kind kind, std::string_view key, std::string_view value);

    // The newest version of a key that `sequence` may see; no value if there is none. Valid as long as
    // the memtable.
    struct Found {
        Kind kind;
        std::string_view value;
    };
    std::optional<Found> get(std::string_view user_key, Sequence sequence) const;

    std::unique_ptr<Cursor> cursor() const; // it must be gone before the memtable
    size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    bool empty() const;

  private:
    friend class MemtableCursor;
    struct Node;

    char *allocate(size_t bytes);
    unsigned draw_height();
    Node *first_from(std::string_view key, Node **before) const;

    std::vector<std::unique_ptr<char[]>> chunks_;
    char *free_ = nullptr, *end_ = nullptr;
    std::atomic<size_t> bytes_{0};
    std::atomic<unsigned> height_{1};
    uint64_t random_ = 0x9e3779b97f4a7c15;
    Node *head_;
};

} // namespace lsm

#endif
