/*
 * What following a pointer costs: a random cycle through nodes of one cache line, in malloc'ed
 * memory and in containers by plain pointers, in a pool by PMEMoid and the inlined
 * pmemobj_direct(). The cycle visits the nodes in the same order everywhere. The peers take turns
 * in short rounds and each keeps its fastest, because a hop in L1 is a few cycles and the machine
 * is shared.
 */
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "micro/container.h"
#include "micro/micro.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>

namespace bench
{
namespace
{

constexpr size_t rounds = 5;

struct alignas(64) RawNode {
    RawNode *next;
};

struct alignas(64) FatNode {
    PMEMoid next;
};

/** Link the nodes into one cycle; `link(i)` is what a pointer to node i looks like. */
template <class Node, class Link>
void make_cycle(Node *nodes, const std::vector<uint32_t> &order, Link &&link)
{
    for (size_t i = 0; i < order.size(); i++)
        nodes[order[i]].next = link(order[(i + 1) % order.size()]);
}

RawNode *make_raw(void *memory, const std::vector<uint32_t> &order)
{
    auto *nodes = static_cast<RawNode *>(memory);
    make_cycle(nodes, order, [&](uint32_t i) { return &nodes[i]; });
    return nodes;
}

PMEMoid make_fat(PMEMoid memory, const std::vector<uint32_t> &order)
{
    auto *nodes = static_cast<FatNode *>(pmemobj_direct(memory));
    make_cycle(nodes, order, [&](uint32_t i) {
        return PMEMoid{memory.pool_uuid_lo, memory.off + i * sizeof(FatNode)};
    });
    return memory;
}

/* The end of a chase is written here, so that the compiler cannot leave it out. */
volatile uint64_t sink;

double chase_raw(const RawNode *node, size_t hops)
{
    return elapsed_ns([&] {
        for (size_t i = 0; i < hops; i++)
            node = node->next;
        sink = reinterpret_cast<uint64_t>(node);
    });
}

double chase_fat(PMEMoid node, size_t hops)
{
    return elapsed_ns([&] {
        for (size_t i = 0; i < hops; i++)
            node = static_cast<const FatNode *>(pmemobj_direct(node))->next;
        sink = node.off;
    });
}

void measure(const std::string &directory, const char *where, size_t size, size_t hops)
{
    auto order = permutation(static_cast<uint32_t>(size / sizeof(RawNode)), 1);
    std::string suffix = std::to_string(size);

    std::unique_ptr<void, decltype(&free)> heap(aligned_alloc(sizeof(RawNode), size), free);
    if (!heap)
        fail("aligned_alloc");
    const RawNode *on_heap = make_raw(heap.get(), order);

    std::deque<Container> containers;
    std::vector<const RawNode *> in_container;
    for (const Mode &mode : modes) {
        Container &container = containers.emplace_back(directory, mode);
        in_container.push_back(make_raw(container.allocate(size), order));
        container.commit();
    }

    Pool pool(directory + "/pool" + suffix, 2 * size + (64 << 20));
    PMEMoid in_pool = make_fat(pool.allocate(size), order);

    std::map<std::string, double> fastest;
    auto keep = [&](const std::string &peer, double ns) {
        fastest[peer] = std::min(fastest.try_emplace(peer, ns).first->second, ns);
    };
    for (size_t round = 0; round < rounds; round++) {
        keep("malloc", chase_raw(on_heap, hops));
        for (size_t i = 0; i < in_container.size(); i++)
            keep(modes[i].name, chase_raw(in_container[i], hops));
        keep("libpmemobj", chase_fat(in_pool, hops));
    }
    for (const auto &[peer, ns] : fastest)
        emit({"chase", {where}, peer, ns / static_cast<double>(hops), "ns", rounds * hops});

    containers.clear();
    for (const Mode &mode : modes)
        Container::remove(directory, mode);
}

} // namespace

void chase(const std::string &directory)
{
    measure(directory, "L1, 16 KiB", 16 << 10, 2'000'000);
    measure(directory, "L2, 256 KiB", 256 << 10, 2'000'000);
    measure(directory, "DRAM, 256 MiB", 256 << 20, 500'000);
}

} // namespace bench
