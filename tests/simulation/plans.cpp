// Which setups are explored, and how thoroughly. Each line is a few seconds to a minute of one
// core.
#include "simulation/run.hpp"

#include <algorithm>
#include <stdexcept>

namespace simulation
{

namespace
{

constexpr uint64_t ALL = UINT64_MAX;
constexpr sim::Kind PMEM = sim::Kind::PMEM, FILE_ = sim::Kind::FILE;

struct Line {
    // One letter each: undo, redo, stores. The log engine does what redo does; l: it alone.
    const char *modes;
    sim::Kind medium;
    const char *structure, *profile;
    sim::Plan plan; // transactions, seeds, nested, depth
    unsigned containers = 1, async = 0;
    bool concurrent = false, full = false;
    unsigned threads = 1;
    bool moved = false, elsewhere = false, compacted = false, discovered = false;
    uint64_t checkpoints = 0;
    bool bounded = false;
};

// A line of the log engine with checkpoints.
Line with_checkpoints(uint64_t bytes, Line line)
{
    line.checkpoints = bytes;
    return line;
}

Line bounded(Line line)
{
    line.bounded = true;
    return line;
}

constexpr const char *modes[] = {"undo", "redo", "stores", "log", "log.stores"};

const Line lines[] = {
    // Every event, and every event of each recovery.
    {"urs", PMEM, "rbtree", "small", {4, 2, ALL, 2}},
    {"rs", FILE_, "rbtree", "small", {6, 2, ALL, 2}},

    {"urs", PMEM, "rbtree", "mixed", {78, 2, 2, 3}},
    {"urs", PMEM, "btree", "mixed", {70, 1, 2, 3}},
    {"urs", PMEM, "skiplist", "mixed", {70, 1, 2, 3}},
    {"urs", PMEM, "hashmap", "mixed", {70, 1, 2, 3}},
    {"ur", PMEM, "rbtree", "allocator", {14, 1, 1, 3}},
    {"urs", PMEM, "rbtree", "large", {18, 1, 2, 3}},
    {"urs", PMEM, "rbtree", "rewrite", {14, 1, 2, 3}},
    {"u", PMEM, "rbtree", "slabs", {15, 1, 2, 3}},
    {"u", PMEM, "rbtree", "reclaim", {5, 1, 1, 2}},
    {"urs", PMEM, "btree", "bulk", {5, 1, 1, 3}},
    {"urs", PMEM, "rbtree", "small", {25, 1, 2, 2}, 2},
    {"ur", PMEM, "rbtree", "mixed", {20, 2, 3, 2}, 1, 0, true},

    {"rs", FILE_, "rbtree", "mixed", {90, 2, 2, 3}},
    {"rs", FILE_, "btree", "mixed", {90, 2, 2, 3}},
    {"rs", FILE_, "skiplist", "mixed", {90, 2, 2, 3}, 1, 3},
    {"rs", FILE_, "hashmap", "mixed", {90, 2, 2, 3}, 1, 4},
    {"rs", FILE_, "rbtree", "allocator", {26, 1, 1, 3}, 1, 3},
    {"rs", FILE_, "rbtree", "large", {40, 2, 2, 3}},
    {"rs", FILE_, "rbtree", "rewrite", {30, 2, 2, 3}, 1, 4},
    {"rs", FILE_, "rbtree", "rewrite", {20, 2, 2, 3}, 1, 0, false, true},
    {"rs", FILE_, "btree", "bulk", {15, 1, 1, 3}, 1, 3},
    {"rs", FILE_, "rbtree", "small", {25, 2, 2, 2}, 2},
    {"rs", FILE_, "rbtree", "mixed", {40, 2, 2, 3}, 1, 0, false, false, 2},
    {"r", FILE_, "hashmap", "allocator", {20, 1, 2, 3}, 1, 0, true, false, 3},

    {"urs", PMEM, "rbtree", "small", {4, 2, 40, 2}, 1, 0, false, false, 1, true},
    {"rs", FILE_, "rbtree", "small", {4, 2, 40, 2}, 1, 0, false, false, 1, true},
    {"urs", PMEM, "rbtree", "small", {8, 2, 20, 2}, 1, 0, false, false, 1, false, true},
    {"rs", FILE_, "rbtree", "small", {8, 2, 20, 2}, 1, 0, false, false, 1, false, true},

    {"rs", PMEM, "rbtree", "small", {3, 1, 1, 2}, 1, 0, false, false, 1, false, false, true},
    {"rs", FILE_, "rbtree", "small", {4, 1, 1, 2}, 1, 0, false, false, 1, false, false, true},

    {"r", PMEM, "rbtree", "small", {6, 2, 10, 2}, 1, 0, false, false, 1, false, false, false, true},
    // clang-format off
    {"r", FILE_, "rbtree", "small", {6, 2, 10, 2}, 1, 0, false, false, 1, false, false, false, true},
    // clang-format on

    {"rs", FILE_, "rbtree", "small", {30, 2, 2, 2}, 1, 0, false, false, 4},

    // Until the log's chunks are cleaned.
    {"l", PMEM, "rbtree", "rewrite", {130, 1, 1, 2}},
    {"l", FILE_, "rbtree", "allocator", {150, 1, 1, 2}},

    // Under undo a compaction has three times the events, of which power failures alone take seconds.
    {"u", PMEM, "rbtree", "small", {2, 0, 0, 1}, 1, 0, false, false, 1, false, false, true},

    // With checkpoints, after each commit or a few, each at once or in shares.
    with_checkpoints(1, {"l", PMEM, "rbtree", "small", {4, 2, ALL, 2}}),
    with_checkpoints(1, {"l", PMEM, "rbtree", "rewrite", {60, 1, 1, 3}}),
    with_checkpoints(1, {"l", FILE_, "rbtree", "small", {6, 2, ALL, 2}}),
    with_checkpoints(4096, {"l", FILE_, "rbtree", "allocator", {60, 1, 1, 3}, 1, 3}),
    with_checkpoints(1, {"l", FILE_, "rbtree", "rewrite", {20, 1, 1, 3}, 1, 0, false, true}),
    with_checkpoints(1, {"l", PMEM, "rbtree", "small", {4, 2, 10, 2}, 1, 0, false, false, 1, true}),
    with_checkpoints(
        1,
        {"l", FILE_, "rbtree", "small", {4, 1, 1, 2}, 1, 0, false, false, 1, false, false, true}),
    with_checkpoints(16384, {"l", PMEM, "rbtree", "mixed", {60, 2, 2, 3}}),
    // Home and map come from the log as they are needed, and go again.
    bounded(with_checkpoints(1, {"l", PMEM, "rbtree", "small", {4, 2, ALL, 2}})),
    bounded(with_checkpoints(1, {"l", PMEM, "rbtree", "rewrite", {60, 1, 1, 3}})),
    bounded({"l", FILE_, "rbtree", "allocator", {60, 1, 1, 3}, 1, 3}),

    // Large values that are handed over, in segments of 256 KiB.
    {"l", PMEM, "rbtree", "values", {10, 1, 1, 2}},
    {"l", FILE_, "rbtree", "values", {20, 1, 1, 2}, 1, 3},
    {"l", FILE_, "rbtree", "values", {10, 1, 1, 2}, 1, 0, false, true},

    // Until the file gets shorter.
    {"l", PMEM, "rbtree", "waves", {50, 1, 0, 1}},
    with_checkpoints(1, {"l", FILE_, "rbtree", "waves", {50, 1, 0, 1}}),
};

// Numbers that seeds are made of stay as they are when the list grows, since mutants are found by
// the programs that they make. It began with so many lines; those that came later are other
// programs, whatever their seeds.
constexpr size_t LINES_FIRST = 30;

// Each run is another program, so that no state is explored twice.
uint64_t seed_of(uint64_t seed, const std::string &mode, const Line *line)
{
    uint64_t m = (uint64_t)(std::find(std::begin(modes), std::end(modes), mode) - modes);
    return (seed * std::size(modes) + m) * LINES_FIRST + (uint64_t)(line - lines);
}

// Whether the cleaner works at each commit. With one seed in one of the log engine's modes, with the next in the
// other one.
bool cleans(const std::string &mode, uint64_t seed)
{
    return seed % 2 ? mode == "log.stores" : mode == "log";
}

// Whether few transactions find little: pages that wait for the file must change again, threads meet during a
// sync, or the file gets shorter.
bool takes_long(const Line &l)
{
    return l.full || l.threads > 1 || l.profile == std::string("waves");
}

} // namespace

static bool is_for(const Line &l, const std::string &mode)
{
    const std::string modes = l.modes, letters = mode == "log"          ? "rl"
                                                 : mode == "log.stores" ? "sl"
                                                                        : mode.substr(0, 1);
    return modes.find_first_of(letters) != std::string::npos;
}

uint64_t states_demanded(const std::string &mode)
{
    return mode == "undo" ? 55000 : mode == "redo" ? 38000 : 37000;
}

std::vector<Run> plan(const std::string &name, const std::string &mode, uint64_t seed)
{
    if (name != "ci" && name != "quick")
        throw std::invalid_argument("no plan called " + name);
    const bool always_cleans = cleans(mode, seed);
    std::vector<Run> runs;
    for (const Line &l : lines) {
        if (!is_for(l, mode))
            continue;
        sim::Plan plan = l.plan;
        if (always_cleans) { // the cleaner's records are many more events
            plan.seeds = (plan.seeds + 1) / 2;
            if (plan.transactions > 10 && !takes_long(l))
                plan.transactions /= 2;
        }
        if (name == "quick") {
            if (!takes_long(l))
                plan.transactions = plan.transactions / 8 + 2;
            plan.nested = std::min<uint64_t>(plan.nested, 1);
            plan.seeds = std::min<uint64_t>(plan.seeds, 1);
        }
        runs.push_back({{l.structure, l.profile, mode, l.medium, seed_of(seed, mode, &l),
                         l.containers, l.async, l.concurrent, l.full, l.threads, l.moved,
                         l.elsewhere, l.compacted, l.discovered, l.checkpoints, l.bounded,
                         always_cleans},
                        plan,
                        {}});
    }
    return runs;
}

} // namespace simulation
