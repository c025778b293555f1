#include "nvmkv/radix.hpp"

#include <atomic>
#include <stdexcept>
#include <string>

namespace nvmkv
{
namespace
{

constexpr unsigned digit_bits = 4;
constexpr unsigned levels = address_bits / digit_bits;
constexpr uintptr_t extent_bit = 1;

unsigned digit(uint64_t sector, unsigned level)
{
    return sector >> (address_bits - digit_bits * (level + 1)) & 15;
}

void *load(const RadixNode *node, unsigned i)
{
    return std::atomic_ref(const_cast<void *&>(node->children[i])).load(std::memory_order_acquire);
}

bool is_extent(void *word)
{
    return reinterpret_cast<uintptr_t>(word) & extent_bit;
}

const Extent *extent_of(void *word)
{
    return reinterpret_cast<const Extent *>(reinterpret_cast<uintptr_t>(word) & ~extent_bit);
}

void *word_of(const Extent *extent)
{
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(extent) | extent_bit);
}

// The first extent below a node that begins at or after `sector`. `bound`: the node is on the path to
// `sector`, so children before the sector's digit are too small.
const Extent *after(const RadixNode *node, unsigned level, uint64_t sector, bool bound)
{
    const unsigned from = bound ? digit(sector, level) : 0;
    for (unsigned i = from; i < 16; i++) {
        void *word = load(node, i);
        if (!word)
            continue;
        const Extent *found;
        if (is_extent(word))
            found = extent_of(word)->first >= sector ? extent_of(word) : nullptr;
        else
            found = after(static_cast<RadixNode *>(word), level + 1, sector, bound && i == from);
        if (found) // else the child has lost its last extent meanwhile
            return found;
    }
    return nullptr;
}

const Extent *before(const RadixNode *node, unsigned level, uint64_t sector, bool bound)
{
    const unsigned from = bound ? digit(sector, level) : 15;
    for (unsigned i = from + 1; i-- > 0;) {
        void *word = load(node, i);
        if (!word)
            continue;
        const Extent *found;
        if (is_extent(word))
            found = extent_of(word)->first <= sector ? extent_of(word) : nullptr;
        else
            found = before(static_cast<RadixNode *>(word), level + 1, sector, bound && i == from);
        if (found)
            return found;
    }
    return nullptr;
}

bool is_empty(const RadixNode *node)
{
    for (void *child : node->children)
        if (child)
            return false;
    return true;
}

void require(bool holds, const char *what)
{
    if (!holds)
        throw std::runtime_error(std::string("the map is damaged: ") + what);
}

void walk_below(const RadixNode *node, unsigned level, uint64_t prefix,
                const std::function<void(const RadixNode *)> &visit_node,
                const std::function<void(const Extent *)> &visit_extent)
{
    const unsigned shift = address_bits - digit_bits * (level + 1);
    for (unsigned i = 0; i < 16; i++) {
        void *word = load(node, i);
        const uint64_t here = prefix << digit_bits | i;
        if (word && is_extent(word)) {
            require(extent_of(word)->first >> shift == here, "an extent in a foreign place");
            visit_extent(extent_of(word));
        } else if (word) {
            const auto *child = static_cast<RadixNode *>(word);
            require(level + 1 < levels, "too many levels");
            require(!is_empty(child), "an empty node");
            visit_node(child);
            walk_below(child, level + 1, here, visit_node, visit_extent);
        }
    }
}

} // namespace

void announce(const void *object, size_t size)
{
    if (pm_dirty(object, size) != 0)
        throw pm::error();
}

void publish(void *&word, void *value)
{
    announce(&word, sizeof word);
    std::atomic_ref(word).store(value, std::memory_order_release);
}

const Extent *Radix::at_or_after(uint64_t sector) const
{
    return sector < sectors_end ? after(top_, 0, sector, true) : nullptr;
}

const Extent *Radix::at_or_before(uint64_t sector) const
{
    return before(top_, 0, sector, true);
}

void Radix::insert(const Extent *extent)
{
    RadixNode *node = top_;
    unsigned level = 0;
    void *word;
    while ((word = load(node, digit(extent->first, level))) && !is_extent(word)) {
        node = static_cast<RadixNode *>(word);
        level++;
    }
    void *&place = node->children[digit(extent->first, level)];
    if (!word || extent_of(word)->first == extent->first) {
        publish(place, word_of(extent));
        return;
    }

    // Two extents have the same digits up to here. Make nodes for the further digits that they share, and
    // link them when all are ready.
    const uint64_t other = extent_of(word)->first;
    void *branch = nullptr;
    for (void **link = &branch;;) {
        auto *added =
            static_cast<RadixNode *>(pm_malloc_typed(container_, PM_TYPE(RadixNode, children), 1));
        if (!added)
            throw pm::error();
        announce(added, sizeof *added);
        *link = added;
        level++;
        if (digit(extent->first, level) != digit(other, level)) {
            added->children[digit(extent->first, level)] = word_of(extent);
            added->children[digit(other, level)] = word;
            break;
        }
        link = &added->children[digit(other, level)];
    }
    publish(place, branch);
}

void Radix::remove(uint64_t sector, const Retire &retire)
{
    RadixNode *path[levels] = {top_};
    unsigned level = 0;
    void *word;
    while ((word = load(path[level], digit(sector, level))) && !is_extent(word)) {
        level++;
        path[level] = static_cast<RadixNode *>(word);
    }
    require(word && extent_of(word)->first == sector, "an extent is gone");
    publish(path[level]->children[digit(sector, level)], nullptr);
    for (; level > 0 && is_empty(path[level]); level--) {
        retire(path[level]);
        publish(path[level - 1]->children[digit(sector, level - 1)], nullptr);
    }
}

void Radix::walk(const std::function<void(const RadixNode *)> &node,
                 const std::function<void(const Extent *)> &extent) const
{
    walk_below(top_, 0, 0, node, extent);
}

} // namespace nvmkv
