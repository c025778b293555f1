// A node of a skip list, for the code that changes lists.
#ifndef EXAMPLES_LSM_NODE_HPP
#define EXAMPLES_LSM_NODE_HPP

#include "lsm/memtable.hpp"

namespace lsm
{

struct Memtable::Node {
    uint32_t value_bytes;
    uint32_t key_bytes : 24, height : 8;
    const char *text;            // the value
    std::atomic<Node *> next[1]; // as many as it is high; then the key

    static size_t bytes(unsigned height, size_t key_bytes)
    {
        return sizeof(Node) + (height - 1) * sizeof(std::atomic<Node *>) + key_bytes;
    }
    size_t bytes() const { return bytes(height, key_bytes); }
    char *key_text() { return reinterpret_cast<char *>(next + height); }
    std::string_view key() const
    {
        return {reinterpret_cast<const char *>(next + height), key_bytes};
    }
    std::string_view value() const { return {text, value_bytes}; }
    Node *after(unsigned level) const { return next[level].load(std::memory_order_acquire); }
};

} // namespace lsm

#endif
