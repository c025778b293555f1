/*
 * What `pmcc --discover` costs a program while it commits nothing: memory from libpm's heap, and the
 * marks of what is stored there. Two programs, BENCH_PEER, since who links such code has another
 * free(), too. Each sample is the fastest of several turns.
 */
#include "discover/work.h"
#include "harness/clock.h"
#include "harness/sample.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace
{

template <class Work> void time(const std::string &row, uint64_t operations, Work &&work)
{
    constexpr int turns = 21;
    double best = std::numeric_limits<double>::max();
    for (int turn = 0; turn < turns; turn++)
        best = std::min(best, bench::elapsed_ns(work));
    bench::emit(
        {"discover", {row}, BENCH_PEER, best / static_cast<double>(operations), "ns", operations});
}

void expect(uint64_t sum, uint64_t expected)
{
    if (sum != expected)
        throw std::runtime_error("the list is not what was put into it");
}

} // namespace

int main()
{
    constexpr size_t count = 1 << 20, nodes = 1 << 16;
    time("malloc, free", count, [] { allocate_and_free(count); });
    time("1,000 live objects of 16 to 256 bytes", count, [] { replace(count, 1000); });
    time("100,000 live objects of 16 to 256 bytes", count, [] { replace(count, 100000); });
    time("a list: link, change, free", nodes,
         [] { expect(build_list(nodes), 3 * nodes * (nodes - 1) / 2); });
    time("a search tree: insert, sum up, free", nodes, [] { build_tree(nodes); });
}
