// An ordered map from sectors to extents in a libpm container: a radix tree of 16 children a node.
//
// An extent hangs at the first word on its path that leads to no other extent. So n extents at random
// addresses lie log16(n) nodes deep: five for a million. A node has 128 bytes. Lookup, insert and remove
// take one step for each node on the path. Finding the first extent at or after a sector, or the last at or
// before it, takes at most twice as many.
//
// The invariants:
//
//   1. A word is empty, or points to a node, or, with its lowest bit set, to an extent.
//   2. On level i of the tree (the top is level 0) the i-th hexadecimal digit of the sector, out of 12,
//      chooses the child.
//   3. No node but the top is empty.
//
// One thread changes the tree, in a transaction of the container. Any number of threads may read it
// meanwhile. For the readers each change is one store of a word. Unlinked objects are not freed, but handed
// to `retire`. The owner of `retire` frees them when the readers have gone (readers.hpp).
//
// Every word is in the pointer map, so that the container can be moved. pm_dirty() announces every store.
// So libpm needs no page fault to learn of a store, whatever compiler made this code.
#ifndef EXAMPLES_NVMKV_RADIX_HPP
#define EXAMPLES_NVMKV_RADIX_HPP

#include <libpm.hpp>

#include <cstdint>
#include <functional>

namespace nvmkv
{

constexpr unsigned address_bits = 48;
constexpr uint64_t sectors_end = UINT64_C(1) << address_bits; // behind the last sector

/// Adjacent sectors that were written together. It lies in the container, and never changes after it was
/// linked.
struct Extent {
    uint64_t first; // sector
    uint64_t count; // sectors, at least 1
    char *data;     // an object of its own

    uint64_t end() const { return first + count; }
};

struct RadixNode {
    void *children[16];
};

class Radix
{
  public:
    using Retire = std::function<void(void *)>;

    Radix(pm_container *container, RadixNode *top) : container_(container), top_(top) {}

    /// The extent that begins at or after `sector`, or nullptr.
    const Extent *at_or_after(uint64_t sector) const;
    /// The last extent that begins at or before `sector`, or nullptr.
    const Extent *at_or_before(uint64_t sector) const;

    /// Link an extent. An old extent with the same first sector is unlinked, but not retired: it belongs
    /// to the caller. If it throws pm::error, the caller must roll back.
    void insert(const Extent *extent);
    /// Unlink the extent that begins at `sector`, which must exist. If it throws pm::error, the caller must
    /// roll back.
    void remove(uint64_t sector, const Retire &retire);

    /// Calls node(object) for each node but the top, and extent(object) for each extent. REQUIRES: no
    /// change meanwhile. Throws std::runtime_error if an invariant is broken.
    void walk(const std::function<void(const RadixNode *)> &node,
              const std::function<void(const Extent *)> &extent) const;

  private:
    pm_container *container_;
    RadixNode *top_;
};

/// pm_dirty(), and then an atomic store: readers see the old or the new word.
void publish(void *&word, void *value);

/// Announces stores to an object; throws pm::error.
void announce(const void *object, size_t size);

} // namespace nvmkv

#endif
