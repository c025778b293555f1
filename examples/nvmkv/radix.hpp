// An ordered map from sectors to extents in a libpm container: a radix tree of 16 children a node.
//
// An extent hangs as high as it is alone: so n extents at random addresses lie log16(n) nodes deep,
// five for a million, of 128 bytes each. Lookup, insert and remove take that many steps; the first
// extent at or after a sector, and the last at or before one, at most twice as many.
//
// What must hold:
//   1. a word is empty, or points to a node, or, with its lowest bit set, to an extent;
//   2. on level i of the tree (the top is level 0) the i-th hexadecimal digit of the sector, out of
//      12, chooses the child;
//   3. no node but the top is empty.
//
// One thread changes the tree, inside a transaction of the container; any number may read it
// meanwhile. For them each change is one store of a word, and what is unlinked is not freed but
// handed to `retire`, whose owner frees it when they have gone (readers.hpp).
//
// Every word is in the pointer map, so that the container can be moved. Every store is announced by
// pm_dirty(), so that libpm needs no page fault to learn of it, whoever compiled this.
#ifndef EXAMPLES_NVMKV_RADIX_HPP
#define EXAMPLES_NVMKV_RADIX_HPP

#include <libpm.hpp>

#include <cstdint>
#include <functional>

namespace nvmkv
{

constexpr unsigned address_bits = 48;
constexpr uint64_t sectors_end = UINT64_C(1) << address_bits; // behind the last sector

/// Adjacent sectors that were written together. In the container; never changed once it is linked.
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
    /// The last one that begins at or before `sector`, or nullptr.
    const Extent *at_or_before(uint64_t sector) const;

    /// Link an extent; one with the same first sector is unlinked (and not retired, as it is the
    /// caller's). Throws pm::error: roll back.
    void insert(const Extent *extent);
    /// Unlink the extent that begins at `sector`, which is there. Throws pm::error: roll back.
    void remove(uint64_t sector, const Retire &retire);

    /// Calls visit(object) for each node but the top, and each extent. REQUIRES: no change
    /// meanwhile. Throws std::runtime_error if an invariant does not hold.
    void walk(const std::function<void(const RadixNode *)> &node,
              const std::function<void(const Extent *)> &extent) const;

  private:
    pm_container *container_;
    RadixNode *top_;
};

/// pm_dirty() and a store that readers see whole.
void publish(void *&word, void *value);

/// Announces stores to an object; throws pm::error.
void announce(const void *object, size_t size);

} // namespace nvmkv

#endif
