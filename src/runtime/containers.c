/*
 * The functions of libstdc++ that link nodes or decide when a table grows, see containers.def. They are
 * compiled without marks. Before code compiled by pmcc calls one, it calls its namesake here, with the
 * same arguments. The namesake announces what the function may change, as marks of its stores would.
 *
 *   1. Every node that the function stores to has been announced, each word with its kind.
 *   2. The functions here read a tree before libstdc++'s function does, and change nothing.
 *   3. A needless announcement does no harm, because a link is a pointer whether it changes or not. But
 *      commit compares the node. So only the levels that are rebalanced are announced: O(1) nodes
 *      amortised, O(log n) at most.
 *
 * The trees are red and black, and libstdc++ mends them as the textbooks do. It goes up as long as other
 * colours suffice, and ends with up to three rotations. These also give another parent to a child of the
 * lowest node that takes part.
 *
 * The structs are those of libstdc++'s ABI; tests/pmcc/containers.cc compares them with its headers.
 */
#include "runtime/containers.h"

#include "runtime/announce.h"

static void announce_word(const void *word, uint8_t kind)
{
    if (!in_arena(word))
        return;
    if (*mark_of(word) == 0)
        pm__mark(word);
    set_kind(word, kind);
}

static void announce_links(const struct list_node *node)
{
    announce_word(&node->next, KIND_POINTER);
    announce_word(&node->previous, KIND_POINTER);
}

/* Announce a node, or the header of a tree. */
static void announce_node(const struct tree_node *node)
{
    announce_word(&node->colour, KIND_DATA);
    announce_word(&node->parent, KIND_POINTER);
    announce_word(&node->left, KIND_POINTER);
    announce_word(&node->right, KIND_POINTER);
}

/* Announce the upper `levels` of a tree that may be empty. */
static void announce_tree(const struct tree_node *node, int levels)
{
    if (!node || levels == 0)
        return;
    announce_node(node);
    announce_tree(node->left, levels - 1);
    announce_tree(node->right, levels - 1);
}

static bool is_red(const struct tree_node *node)
{
    return node && node->colour == TREE_RED;
}

static const struct tree_node *sibling(const struct tree_node *node, const struct tree_node *parent)
{
    return node == parent->left ? parent->right : parent->left;
}

#define LINKS(name, type, parameters) EXPORT void pm__##name parameters;
#include "runtime/containers.def"

/* `added` is not linked yet, so its links must not be read. */
void pm___ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(
    bool is_left, const struct tree_node *added, const struct tree_node *parent,
    const struct tree_node *header)
{
    (void)is_left;
    announce_node(added);
    announce_node(header);
    announce_node(parent);
    /* Red below red: if the uncle is red too, the grandparent becomes red, and may be below red. */
    for (const struct tree_node *p = parent; p != header && is_red(p);) {
        const struct tree_node *grandparent = p->parent, *uncle = sibling(p, grandparent);
        announce_node(grandparent);
        if (!is_red(uncle)) { /* two rotations; everything below p's children has been announced */
            announce_tree(p, 2);
            announce_node(grandparent->parent);
            break;
        }
        announce_node(p);
        announce_node(uncle);
        p = grandparent->parent;
    }
}

void pm___ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(
    const struct tree_node *erased, const struct tree_node *header)
{
    /* If the node has one child at most, this child replaces it. Otherwise its successor replaces it, and
     * the successor's child replaces the successor. `gap` is the place where a level is missing then. */
    const struct tree_node *gap = erased;
    if (erased->left && erased->right)
        for (gap = erased->right; gap->left;)
            gap = gap->left;
    announce_node(header);
    announce_tree(erased, 2);
    announce_node(erased->parent);
    announce_tree(gap, 2);
    /* A black node is missing below. If the sibling and its children are black, the sibling becomes
     * red. Then the parent is the next gap, unless it is red. */
    for (const struct tree_node *parent;; gap = parent) {
        parent = gap->parent;
        announce_node(parent);
        if (parent == header || is_red(gap))
            break;
        const struct tree_node *other = sibling(gap, parent);
        if (!other)
            break;
        announce_node(other);
        /* Up to three rotations follow. If the sibling is red, the first rotation makes one of the
         * sibling's children the new sibling. The inner child of this new sibling, and its children, take
         * part as well. */
        if (is_red(other) || is_red(other->left) || is_red(other->right)) {
            announce_tree(other, is_red(other) ? 4 : 3);
            announce_node(parent->parent);
            break;
        }
    }
}

void pm___ZNSt8__detail15_List_node_base7_M_hookEPS0_(const struct list_node *added,
                                                      const struct list_node *position)
{
    announce_links(added);
    announce_links(position);
    announce_links(position->previous);
}

void pm___ZNSt8__detail15_List_node_base9_M_unhookEv(const struct list_node *node)
{
    announce_links(node->previous);
    announce_links(node->next);
}

void pm___ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_(const struct list_node *position,
                                                              const struct list_node *first,
                                                              const struct list_node *last)
{
    const struct list_node *nodes[] = {position, first, last};
    for (int i = 0; i < 3; i++) {
        announce_links(nodes[i]);
        announce_links(nodes[i]->previous);
    }
}

void pm___ZNSt8__detail15_List_node_base10_M_reverseEv(const struct list_node *header)
{
    const struct list_node *node = header;
    do
        announce_links(node);
    while ((node = node->next) != header);
}

void pm___ZNSt8__detail15_List_node_base4swapERS0_S1_(const struct list_node *a,
                                                      const struct list_node *b)
{
    const struct list_node *headers[] = {a, b};
    for (int i = 0; i < 2; i++) {
        announce_links(headers[i]);
        announce_links(headers[i]->previous);
        announce_links(headers[i]->next);
    }
}

void pm___ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(const struct rehash_policy *policy,
                                                              uint64_t buckets)
{
    (void)buckets;
    announce_word(&policy->next_resize, KIND_DATA);
}

void pm___ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm(
    const struct rehash_policy *policy, uint64_t buckets, uint64_t elements, uint64_t added)
{
    (void)buckets, (void)elements, (void)added;
    announce_word(&policy->next_resize, KIND_DATA);
}
