// A structure full of pointers: a list whose nodes know their neighbours, a cell inside the next
// node, and the end of an array of their own.
#ifndef TESTS_LINKED_HPP
#define TESTS_LINKED_HPP

#include <libpm.h>

#include <cstdint>
#include <stdexcept>

namespace linked
{

struct Node {
    uint64_t number;
    Node *next, *previous;
    uint64_t *inside; // `number` of the next node, or null
    int *data;        // an array of 10
    int *end;
};

struct Root {
    uint64_t count;
    Node *first;
};

inline void check(bool condition, const char *what)
{
    if (!condition)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

inline Root *root(pm_container *c)
{
    return static_cast<Root *>(pm_getroot(c));
}

// Declare no types: the code is compiled by pmcc, which records what it stores.
inline bool recorded = false;

template <class T> T *make(pm_container *c, const pm_type *type)
{
    return static_cast<T *>(recorded ? pm_calloc(c, 1, type->size) : pm_malloc_typed(c, type, 1));
}

inline void push(pm_container *c)
{
    auto *node = make<Node>(c, PM_TYPE(Node, next, previous, inside, data, end));
    auto *data = static_cast<int *>(pm_calloc(c, 10, sizeof(int)));
    check(node && data, "push");
    Root *r = root(c);
    *node = {++r->count, r->first, nullptr, r->first ? &r->first->number : nullptr,
             data,       data + 10};
    for (int i = 0; i < 10; i++)
        data[i] = int(node->number) + i;
    if (r->first)
        r->first->previous = node;
    r->first = node;
}

// Other memory for an array, where the last one may have been; what it holds is as it was.
inline void renew(pm_container *c)
{
    Node *node = root(c)->first;
    while (node->next && node->number % 4 != 1)
        node = node->next;
    auto *data = static_cast<int *>(pm_malloc(c, 10 * sizeof(int)));
    check(data, "renew");
    for (int i = 0; i < 10; i++)
        data[i] = node->data[i];
    check(pm_free(node->data) == 0, "renew");
    node->data = data;
    node->end = data + 10;
}

inline void build(pm_container *c, uint64_t count)
{
    auto *r = make<Root>(c, PM_TYPE(Root, first));
    check(r && pm_setroot(c, r, 0) == 0, "build");
    while (r->count < count)
        push(c);
}

// That it has so many nodes and all is right; throws otherwise.
inline void require(pm_container *c, uint64_t count)
{
    const Root *r = root(c);
    check(r && r->count == count, "count");
    uint64_t number = count;
    const Node *previous = nullptr;
    for (const Node *n = r->first; n; previous = n, n = n->next) {
        check(pm_contains(c, n) && n->number == number-- && n->previous == previous, "node");
        check(n->next ? n->inside == &n->next->number : !n->inside, "inside");
        check(pm_contains(c, n->data) && n->end - n->data == 10, "array");
        for (const int *p = n->data; p < n->end; p++)
            check(*p == int(n->number) + (p - n->data), "data");
    }
    check(number == 0, "length");
}

} // namespace linked

#endif
