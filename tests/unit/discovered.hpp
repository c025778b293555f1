// Nodes on the volatile heap, that commits find: linked in a list, to each other, into each other and
// just past the end of each other. What each has follows from its number.
#ifndef TESTS_DISCOVERED_HPP
#define TESTS_DISCOVERED_HPP

#include "common/compiled.hpp"

#include <libpm.h>

#include <stdexcept>
#include <string>

namespace discovered
{

using compiled::put;

struct Node {
    Node *next, *other; // `other`: any one, or null
    uint64_t *inside;   // the last word of `other`, or its `words` if that is 0
    uint64_t *end;      // behind the own words, which follow the node
    uint64_t number, words;
};

struct Root {
    Node *first;
    uint64_t count, commits;
};

inline uint64_t *words_of(Node *n)
{
    return reinterpret_cast<uint64_t *>(n + 1);
}

inline uint64_t *inside_of(Node *n)
{
    return n->words > 0 ? words_of(n) + n->words - 1 : &n->words;
}

inline uint64_t word(const Node *n, uint64_t i)
{
    return (n->number << 20 ^ i) * 0x9e3779b97f4a7c15;
}

inline void require(bool condition, const char *what)
{
    if (!condition)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

// The root; on the heap if there has been none.
inline Root *root(pm_container *c)
{
    auto *r = static_cast<Root *>(pm_getroot(c));
    if (!r) {
        r = compiled::make<Root>();
        require(r && pm_setroot(c, r, 0) == 0, "pm_setroot");
    }
    return r;
}

inline Node *make(uint64_t number, uint64_t words, Node *other)
{
    auto *n = compiled::make<Node>(sizeof(Node) + words * sizeof(uint64_t));
    require(n, "malloc");
    put(n->number, number);
    put(n->words, words);
    put(n->end, words_of(n) + words);
    put(n->other, other);
    put(n->inside, other ? inside_of(other) : nullptr);
    for (uint64_t i = 0; i < words; i++)
        put(words_of(n)[i], word(n, i));
    return n;
}

inline Node *push(Root *r, uint64_t words, Node *other)
{
    Node *n = make(r->count, words, other);
    put(n->next, r->first);
    put(r->first, n);
    put(r->count, r->count + 1);
    return n;
}

// Whether the container's pointer map has a field, if that matters.
template <class T> bool is_mapped(T *const &field)
{
    return !field || pm_next_pointer(&field, &field + 1) == reinterpret_cast<void *const *>(&field);
}

// That all is in the container, and as it was made.
inline void check(pm_container *c)
{
    auto *r = static_cast<Root *>(pm_getroot(c));
    require(r && pm_contains(c, r) && is_mapped(r->first), "the root");
    uint64_t number = r->count;
    for (Node *n = r->first; n; n = n->next) {
        require(pm_contains(c, n) && n->number == --number, "a node");
        require(n->end == words_of(n) + n->words, "an end");
        require(is_mapped(n->next) && is_mapped(n->other) && is_mapped(n->inside) &&
                    is_mapped(n->end),
                "the pointer map");
        require(!n->other || (pm_contains(c, n->other) && n->inside == inside_of(n->other)),
                "another");
        for (uint64_t i = 0; i < n->words; i++)
            require(words_of(n)[i] == word(n, i), "a word");
    }
    require(number == 0, "all nodes");
}

} // namespace discovered

#endif
