/*
 * Graph search (George et al., section 4.2). A query finds the nodes with given values of 1 to 5 features. Such a
 * node must also have a neighbour with the given value of the first feature. NO-PM reads a file of Protocol
 * Buffers' messages and makes objects of them. ALL-PM and SELECT-PM open a store.
 *
 *     PEER: make, no-pm, all-pm, select-pm
 */
#include "tiered/data.h"
#include "tiered/program.h"

#include "points.pb.h"
#include "types.durable.hpp"

using bench::Job;

namespace
{

constexpr size_t queries_each = 20; // for each number of constraints

struct Constraint {
    size_t feature;
    int32_t value;
};

struct Loaded {
    std::array<int32_t, bench::features> values_;
    std::vector<uint32_t> neighbours_;
    std::string text_;

    std::span<const int32_t, bench::features> values() const { return values_; }
    const std::vector<uint32_t> &neighbours() const { return neighbours_; }
};

bool has_all(std::span<const int32_t, bench::features> values, std::span<const Constraint> wanted)
{
    return std::ranges::all_of(wanted,
                               [&](Constraint one) { return values[one.feature] == one.value; });
}

template <class Nodes> size_t search(const Nodes &nodes, std::span<const Constraint> wanted)
{
    size_t found = 0;
    for (const auto &node : nodes) {
        if (!has_all(node.values(), wanted))
            continue;
        for (const uint32_t neighbour : node.neighbours())
            if (has_all(nodes[neighbour].values(), wanted.first(1))) {
                found++;
                break;
            }
    }
    return found;
}

template <class Nodes> void search_all(const Job &job, const Nodes &nodes, uint64_t begin)
{
    const uint64_t loaded = bench::now_ns();
    std::mt19937 random(4);
    size_t found = 0;
    for (size_t count = 1; count <= 5; count++)
        for (size_t q = 0; q < queries_each; q++) {
            std::vector<Constraint> wanted;
            for (size_t i = 0; i < count; i++)
                wanted.push_back(
                    {random() % bench::features, int32_t(random() % bench::feature_values)});
            found += search(nodes, wanted);
        }
    const uint64_t end = bench::now_ns();
    bench::emit({"graph", {"load"}, job.peer, double(loaded - begin)});
    bench::emit({"graph", {"search"}, job.peer, double(end - loaded)});
    bench::emit({"graph", {"both"}, job.peer, double(end - begin)});
    std::cerr << job.peer << ": found " << found << "\n";
}

void write(const Job &job)
{
    bench::GraphSource source;
    bench::write_messages<bench::stored::Node>(job.messages(), job.count, [&](auto &message) {
        const bench::GraphNode next = source.next();
        message.mutable_features()->Add(next.values.begin(), next.values.end());
        message.mutable_neighbours()->Add(next.neighbours.begin(), next.neighbours.end());
        message.set_text(next.text);
    });
}

template <class Node> void make(const Job &job, const char *name)
{
    tiered::store store = job.open(name);
    auto &all = store.root<tiered::vector<Node>>("nodes");
    bench::GraphSource source;
    bench::make_objects(store, job.count, [&] {
        const bench::GraphNode next = source.next();
        const Node node = store.make<Node>();
        node.set_values(next.values);
        node.set_neighbours(next.neighbours);
        node.set_text(next.text);
        all.push_back(node);
    });
}

template <class Node> void run(const Job &job, const char *name)
{
    const uint64_t begin = bench::now_ns();
    tiered::store store = job.open(name);
    search_all(job, store.root<tiered::vector<Node>>("nodes"), begin);
}

void run_without(const Job &job)
{
    const uint64_t begin = bench::now_ns();
    std::vector<Loaded> nodes;
    nodes.reserve(job.count);
    bench::read_messages<bench::stored::Node>(job.messages(), [&](const auto &message) {
        Loaded &node = nodes.emplace_back();
        std::copy_n(message.features().begin(), bench::features, node.values_.begin());
        node.neighbours_.assign(message.neighbours().begin(), message.neighbours().end());
        node.text_ = message.text();
    });
    search_all(job, nodes, begin);
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run_peers(argc, argv, [](const Job &job) {
        if (job.peer == "make") {
            write(job);
            make<bench::durable::all_node>(job, "all");
            make<bench::durable::select_node>(job, "select");
        } else if (job.peer == "no-pm") {
            run_without(job);
        } else if (job.peer == "all-pm") {
            run<bench::durable::all_node>(job, "all");
        } else {
            run<bench::durable::select_node>(job, "select");
        }
    });
}
