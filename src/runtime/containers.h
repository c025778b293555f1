/* The layout of libstdc++'s nodes, as containers.c needs it. */
#ifndef PM_RUNTIME_CONTAINERS_H
#define PM_RUNTIME_CONTAINERS_H

#include <stdint.h>

enum { TREE_RED = 0 };

/* std::_Rb_tree_node_base */
struct tree_node {
    int32_t colour;
    struct tree_node *parent, *left, *right;
};

/* std::__detail::_List_node_base */
struct list_node {
    struct list_node *next, *previous;
};

/* std::__detail::_Prime_rehash_policy */
struct rehash_policy {
    float max_load_factor;
    uint64_t next_resize;
};

#endif
