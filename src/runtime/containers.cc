/*
 * The functions of libstdc++ that link nodes or decide when a table grows, for code compiled by
 * `pmcc --discover`, see containers.def. Their stores have no marks, so each is wrapped: the wrapper
 * announces what the function may change, as marks of its stores would, and then calls it. In an
 * archive that is linked into the program, like new.cc, and for the same reasons weak and not
 * noexcept.
 *
 *   1. Every node that the function stores to has been announced, each word with its kind.
 *   2. The wrapper reads a tree as the function will find it, and changes nothing.
 *   3. What is announced needlessly does no harm, since a link is a pointer whether it changes or
 *      not, but is compared by commit. So no more than the levels that are rebalanced: O(1) nodes
 *      amortised, O(log n) at most.
 *
 * The trees are red and black, and libstdc++ mends them as the textbooks do: it goes up as long as it
 * can do with other colours, and ends with up to three rotations, which also give another parent to
 * a child of the lowest node that takes part.
 */
#include "runtime/announce.h"

#include <cstddef>
#include <list>
#include <map>
#include <unordered_map>

#define CONTAINER extern "C" __attribute__((weak, visibility("hidden")))

namespace
{

using ListNode = std::__detail::_List_node_base;
using TreeNode = std::_Rb_tree_node_base;
using Policy = std::__detail::_Prime_rehash_policy;
static_assert(sizeof(ListNode) == 16 && sizeof(TreeNode) == 32 &&
              offsetof(TreeNode, _M_parent) == 8);

void announce_word(const void *word, uint8_t kind)
{
    if (!in_arena(word))
        return;
    if (*mark_of(word) == 0)
        pm__mark(word);
    set_kind(word, kind);
}

void announce_node(const ListNode *node)
{
    announce_word(&node->_M_next, KIND_POINTER);
    announce_word(&node->_M_prev, KIND_POINTER);
}

/* A node, or the header of a tree. */
void announce_node(const TreeNode *node)
{
    announce_word(&node->_M_color, KIND_DATA);
    announce_word(&node->_M_parent, KIND_POINTER);
    announce_word(&node->_M_left, KIND_POINTER);
    announce_word(&node->_M_right, KIND_POINTER);
}

/* The upper `levels` of a tree that may be empty. */
void announce_tree(const TreeNode *node, int levels)
{
    if (!node || levels == 0)
        return;
    announce_node(node);
    announce_tree(node->_M_left, levels - 1);
    announce_tree(node->_M_right, levels - 1);
}

bool is_red(const TreeNode *node)
{
    return node && node->_M_color == std::_S_red;
}

const TreeNode *sibling(const TreeNode *node, const TreeNode *parent)
{
    return node == parent->_M_left ? parent->_M_right : parent->_M_left;
}

} // namespace

/* `added` is not linked yet, and its links are not to be read. */
CONTAINER void pm___ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(
    bool left, TreeNode *added, TreeNode *parent, TreeNode *header)
{
    announce_node(added);
    announce_node(header);
    announce_node(parent);
    /* Red below red: if the uncle is red too, the grandparent becomes red, and may be below red. */
    for (const TreeNode *p = parent; p != header && is_red(p);) {
        const TreeNode *grandparent = p->_M_parent, *uncle = sibling(p, grandparent);
        announce_node(grandparent);
        if (!is_red(uncle)) { /* two rotations; all below p's children has been announced */
            announce_tree(p, 2);
            announce_node(grandparent->_M_parent);
            break;
        }
        announce_node(p);
        announce_node(uncle);
        p = grandparent->_M_parent;
    }
    std::_Rb_tree_insert_and_rebalance(left, added, parent, *header);
}

CONTAINER TreeNode *
pm___ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(TreeNode *erased, TreeNode *header)
{
    /* Either the node has a child at most, which replaces it; or its successor replaces it, and the
     * successor's child the successor. `gap` is where a level is missing then. */
    const TreeNode *gap = erased;
    if (erased->_M_left && erased->_M_right)
        for (gap = erased->_M_right; gap->_M_left;)
            gap = gap->_M_left;
    announce_node(header);
    announce_tree(erased, 2);
    announce_node(erased->_M_parent);
    announce_tree(gap, 2);
    /* A black node is missing below: if the sibling and its children are black, the sibling becomes
     * red, and the parent is the next gap, unless it is red. */
    for (const TreeNode *parent;; gap = parent) {
        parent = gap->_M_parent;
        announce_node(parent);
        if (parent == header || is_red(gap))
            break;
        const TreeNode *other = sibling(gap, parent);
        if (!other)
            break;
        announce_node(other);
        /* Up to three rotations, the first if the sibling is red: a child of it is the sibling then,
         * whose inner child, and the children of that, take part as well. */
        if (is_red(other) || is_red(other->_M_left) || is_red(other->_M_right)) {
            announce_tree(other, is_red(other) ? 4 : 3);
            announce_node(parent->_M_parent);
            break;
        }
    }
    return std::_Rb_tree_rebalance_for_erase(erased, *header);
}

CONTAINER void pm___ZNSt8__detail15_List_node_base7_M_hookEPS0_(ListNode *added, ListNode *position)
{
    announce_node(added);
    announce_node(position);
    announce_node(position->_M_prev);
    added->_M_hook(position);
}

CONTAINER void pm___ZNSt8__detail15_List_node_base9_M_unhookEv(ListNode *node)
{
    announce_node(node->_M_prev);
    announce_node(node->_M_next);
    node->_M_unhook();
}

CONTAINER void pm___ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_(ListNode *position,
                                                                        ListNode *first,
                                                                        ListNode *last)
{
    for (const ListNode *node : {position, first, last}) {
        announce_node(node);
        announce_node(node->_M_prev);
    }
    position->_M_transfer(first, last);
}

CONTAINER void pm___ZNSt8__detail15_List_node_base10_M_reverseEv(ListNode *header)
{
    const ListNode *node = header;
    do
        announce_node(node);
    while ((node = node->_M_next) != header);
    header->_M_reverse();
}

CONTAINER void pm___ZNSt8__detail15_List_node_base4swapERS0_S1_(ListNode *a, ListNode *b)
{
    for (const ListNode *header : {a, b}) {
        announce_node(header);
        announce_node(header->_M_prev);
        announce_node(header->_M_next);
    }
    ListNode::swap(*a, *b);
}

CONTAINER std::size_t pm___ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(const Policy *policy,
                                                                               std::size_t buckets)
{
    announce_word(&policy->_M_next_resize, KIND_DATA);
    return policy->_M_next_bkt(buckets);
}

/* Named so, since what it returns is nothing that C could. */
__attribute__((weak, visibility("hidden"))) std::pair<bool, std::size_t> need_rehash(
    const Policy *policy, std::size_t buckets, std::size_t elements,
    std::size_t added) __asm__("pm___ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm");

std::pair<bool, std::size_t> need_rehash(const Policy *policy, std::size_t buckets,
                                         std::size_t elements, std::size_t added)
{
    announce_word(&policy->_M_next_resize, KIND_DATA);
    return policy->_M_need_rehash(buckets, elements, added);
}
