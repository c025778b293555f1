/*
 * What discovery costs: a tree of a million malloc'ed nodes moves into a container at once, beside the
 * same tree copied node by node into memory from pm_malloc(); and then one new node at a time, while
 * a million other objects live on the heap, of which some point at the new node.
 *
 * All of it is compiled as `pmcc --discover` does, so both sides pay for the marks.
 */
#include "discover/report.h"
#include "harness/clock.h"
#include "harness/random.h"
#include "libpm.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

constexpr uint32_t nodes = 1'000'000, bystanders = 1'000'000;
constexpr uint64_t additions = 4000, warm_up = 400;
constexpr int references = 4; // of bystanders to each new node

struct Node {
    Node *child[2];
    uint64_t key, value;
};

struct Bystander {
    Node *node;
    Bystander *other;
    uint64_t number;
};

void require(bool it)
{
    if (!it)
        throw std::runtime_error(std::string("libpm: ") + pm_errormsg());
}

pm_container *open(const std::string &path, unsigned flags)
{
    pm_options options{};
    options.size = sizeof options;
    options.flags = PM_CREATE | flags;
    options.engine = PM_ENGINE_REDO;
    options.tracker = PM_TRACKER_STORES;
    pm_container *c = pm_open(path.c_str(), &options);
    require(c != nullptr);
    return c;
}

void remove(pm_container *c, const std::string &path)
{
    require(pm_close(c) == 0 && pm_delete(path.c_str()) == 0);
}

Node *new_node(pm_container *c, uint64_t key)
{
    void *memory = c ? pm_malloc(c, sizeof(Node)) : malloc(sizeof(Node));
    require(memory != nullptr);
    auto *node = static_cast<Node *>(memory);
    *node = Node{{nullptr, nullptr}, key, ~key};
    return node;
}

/* Where a key that is not in the tree belongs. */
Node **place_of(Node **link, uint64_t key)
{
    while (*link)
        link = &(*link)->child[key > (*link)->key];
    return link;
}

Node *make_tree()
{
    Node *root = nullptr;
    for (uint64_t i = 0; i < nodes; i++)
        *place_of(&root, bench::scramble(i)) = new_node(nullptr, bench::scramble(i));
    return root;
}

Node *copy(pm_container *c, Node *from)
{
    if (!from)
        return nullptr;
    auto *to = static_cast<Node *>(pm_malloc(c, sizeof(Node)));
    require(to != nullptr);
    *to = *from;
    to->child[0] = copy(c, from->child[0]);
    to->child[1] = copy(c, from->child[1]);
    free(from);
    return to;
}

uint64_t count(const Node *node)
{
    return node ? 1 + count(node->child[0]) + count(node->child[1]) : 0;
}

/* As a program would that does it by hand: ns a node. */
double move_by_hand(pm_container *c)
{
    Node *root = make_tree();
    double ns = bench::elapsed_ns([&] {
        require(pm_setroot(c, copy(c, root), 0) == 0);
        require(pm_commit(c) == 0);
    });
    return ns / nodes;
}

double move_by_discovery(pm_container *c)
{
    Node *root = make_tree();
    double ns = bench::elapsed_ns([&] {
        require(pm_setroot(c, root, 0) == 0);
        require(pm_commit(c) == 0);
    });
    require(pm_contains(c, root) && count(root) == nodes);
    return ns / nodes;
}

std::vector<Bystander *> make_bystanders()
{
    std::vector<Bystander *> all(bystanders);
    for (uint32_t i = 0; i < bystanders; i++) {
        void *memory = malloc(sizeof(Bystander));
        require(memory != nullptr);
        all[i] = static_cast<Bystander *>(memory);
        *all[i] = Bystander{nullptr, i ? all[bench::scramble(i) % i] : nullptr, i};
    }
    return all;
}

/* ns of a commit after one more node; `from` is the container that it is allocated in, or null. */
double add_one(pm_container *c, pm_container *from, const std::vector<Bystander *> &all)
{
    bench::Random random(3);
    auto *root = static_cast<Node *>(pm_getroot(c));
    double ns = 0;
    for (uint64_t i = 0; i < warm_up + additions; i++) {
        uint64_t key = bench::scramble(nodes + i);
        Node **link = place_of(&root, key);
        *link = new_node(from, key);
        Bystander *one = nullptr;
        for (int k = 0; k < references; k++) {
            one = all[random.below(bystanders)];
            one->node = *link;
        }
        double commit = bench::elapsed_ns([&] { require(pm_commit(c) == 0); });
        require(one->node == *link && pm_contains(c, one->node));
        if (i >= warm_up)
            ns += commit;
    }
    return ns / additions;
}

void run(const std::string &directory)
{
    const std::string by_hand = directory + "/hand", discovered = directory + "/discovered";
    pm_container *hand = open(by_hand, 0);
    const double copied = move_by_hand(hand);
    pm_container *c = open(discovered, PM_DISCOVER);
    const double moved = move_by_discovery(c);
    bench::report("discovery", "a node moved", "by hand", copied, nodes);
    bench::report("discovery", "a node moved", "discovery", moved, nodes);

    const std::vector<Bystander *> all = make_bystanders();
    const double plain = add_one(hand, hand, all), found = add_one(c, nullptr, all);
    const char *row = "a commit after one new node", *table = "discovery_commit";
    bench::report(table, row, "redo/stores", plain, additions);
    bench::report(table, row, "discovery", found, additions);
    bench::report(table, row, "difference", found - plain, additions);
    remove(hand, by_hand);
    remove(c, discovered);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: bench_discover_commit DIRECTORY\n", stderr);
        return 2;
    }
    try {
        run(argv[1]);
    } catch (const std::exception &error) {
        fprintf(stderr, "discovery: %s\n", error.what());
        return 1;
    }
}
