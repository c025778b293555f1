// What each operation of the example structures costs on the medium: counts, which have no noise.
// A change of the engines that changes them shows here, for better or worse. Then look whether it
// was meant, and put the table that the failing test prints in the place of this one.
//
// Each number is the sum over OPERATIONS operations, one commit each, on KEYS keys.
#include "common/process.hpp"

#include <common/map.h>

#include <cstdio>
#include <vector>

namespace
{

constexpr uint64_t KEYS = 2000, OPERATIONS = 1000;

struct Cost {
    const char *mode, *structure, *operation;
    uint64_t fences, lines_flushed, bytes_logged;
};

const Cost golden[] = {
    {"log", "rbtree", "insert", 1000, 0, 253888},
    {"log", "rbtree", "lookup", 0, 0, 0},
    {"log", "rbtree", "update", 1000, 0, 120960},
    {"log", "rbtree", "remove", 1000, 0, 351424},
    {"log", "btree", "insert", 1000, 0, 248704},
    {"log", "btree", "lookup", 0, 0, 0},
    {"log", "btree", "update", 1000, 0, 128128},
    {"log", "btree", "remove", 1000, 0, 289280},
    {"log", "skiplist", "insert", 1000, 0, 211264},
    {"log", "skiplist", "lookup", 0, 0, 0},
    {"log", "skiplist", "update", 1000, 0, 116416},
    {"log", "skiplist", "remove", 1000, 0, 164736},
    {"log", "hashmap", "insert", 1000, 0, 259904},
    {"log", "hashmap", "lookup", 0, 0, 0},
    {"log", "hashmap", "update", 1000, 0, 119744},
    {"log", "hashmap", "remove", 1000, 0, 186944},
    {"log.stores", "rbtree", "insert", 1000, 0, 253888},
    {"log.stores", "rbtree", "lookup", 0, 0, 0},
    {"log.stores", "rbtree", "update", 1000, 0, 120960},
    {"log.stores", "rbtree", "remove", 1000, 0, 351424},
    {"log.stores", "btree", "insert", 1000, 0, 249856},
    {"log.stores", "btree", "lookup", 0, 0, 0},
    {"log.stores", "btree", "update", 1000, 0, 128128},
    {"log.stores", "btree", "remove", 1000, 0, 289280},
    {"log.stores", "skiplist", "insert", 1000, 0, 211264},
    {"log.stores", "skiplist", "lookup", 0, 0, 0},
    {"log.stores", "skiplist", "update", 1000, 0, 116416},
    {"log.stores", "skiplist", "remove", 1000, 0, 164736},
    {"log.stores", "hashmap", "insert", 1000, 0, 259904},
    {"log.stores", "hashmap", "lookup", 0, 0, 0},
    {"log.stores", "hashmap", "update", 1000, 0, 119744},
    {"log.stores", "hashmap", "remove", 1000, 0, 186944},
    {"undo", "rbtree", "insert", 1034, 5480, 21210784},
    {"undo", "rbtree", "lookup", 0, 0, 0},
    {"undo", "rbtree", "update", 1012, 1344, 5335216},
    {"undo", "rbtree", "remove", 1066, 5096, 27281168},
    {"undo", "skiplist", "insert", 1221, 16744, 23717728},
    {"undo", "skiplist", "lookup", 0, 0, 0},
    {"undo", "skiplist", "update", 1040, 2816, 7560560},
    {"undo", "skiplist", "remove", 1178, 12328, 23162032},
    {"undo", "hashmap", "insert", 1222, 16812, 35623504},
    {"undo", "hashmap", "lookup", 0, 0, 0},
    {"undo", "hashmap", "update", 1007, 1216, 5003792},
    {"undo", "hashmap", "remove", 1353, 23592, 46314496},
    {"redo", "rbtree", "insert", 1000, 5493, 472256},
    {"redo", "rbtree", "lookup", 0, 0, 0},
    {"redo", "rbtree", "update", 1000, 1001, 192000},
    {"redo", "rbtree", "remove", 1000, 7225, 550592},
    {"redo", "btree", "insert", 1000, 4075, 412608},
    {"redo", "btree", "lookup", 0, 0, 0},
    {"redo", "btree", "update", 1000, 1296, 220224},
    {"redo", "btree", "remove", 1000, 5693, 479744},
    {"redo", "skiplist", "insert", 1000, 3967, 340800},
    {"redo", "skiplist", "lookup", 0, 0, 0},
    {"redo", "skiplist", "update", 1000, 1001, 192000},
    {"redo", "skiplist", "remove", 1000, 3260, 272704},
    {"redo", "hashmap", "insert", 1000, 4416, 404800},
    {"redo", "hashmap", "lookup", 0, 0, 0},
    {"redo", "hashmap", "update", 1000, 1001, 192000},
    {"redo", "hashmap", "remove", 1000, 2999, 256000},
    {"stores", "rbtree", "insert", 1000, 5493, 472832},
    {"stores", "rbtree", "lookup", 0, 0, 0},
    {"stores", "rbtree", "update", 1000, 1001, 192000},
    {"stores", "rbtree", "remove", 1000, 7225, 550528},
    {"stores", "btree", "insert", 1000, 4075, 403264},
    {"stores", "btree", "lookup", 0, 0, 0},
    {"stores", "btree", "update", 1000, 1296, 210944},
    {"stores", "btree", "remove", 1000, 5693, 480256},
    {"stores", "skiplist", "insert", 1000, 3967, 340800},
    {"stores", "skiplist", "lookup", 0, 0, 0},
    {"stores", "skiplist", "update", 1000, 1001, 192000},
    {"stores", "skiplist", "remove", 1000, 3260, 272704},
    {"stores", "hashmap", "insert", 1000, 4416, 409664},
    {"stores", "hashmap", "lookup", 0, 0, 0},
    {"stores", "hashmap", "update", 1000, 1001, 192000},
    {"stores", "hashmap", "remove", 1000, 2999, 256000},
};

// The same with the log engine's cleaner at work: CHURN replaced keys in chunks of 64 KiB, each in a commit.
constexpr uint64_t CHURN = 20000;

struct Cleaned {
    const char *mode, *structure;
    uint64_t records; // of the cleaner
    uint64_t bytes_logged, file_bytes;
};

const Cleaned golden_cleaned[] = {
    {"log", "rbtree", 677, 8058496, 786432},
    {"log", "btree", 164, 5735808, 786432},
    {"log", "skiplist", 321, 5726272, 786432},
    {"log", "hashmap", 567, 5029056, 786432},
    {"log.stores", "rbtree", 692, 8067520, 786432},
    {"log.stores", "btree", 177, 5759744, 786432},
    {"log.stores", "skiplist", 427, 5911424, 786432},
    {"log.stores", "hashmap", 571, 5011392, 786432},
};

// Keys in an order that looks random.
uint64_t key_of(uint64_t i)
{
    return i * 0x9E3779B97F4A7C15u >> 32;
}

std::string line_of(const Cost &cost)
{
    char text[200];
    snprintf(text, sizeof text, "    {\"%s\", \"%s\", \"%s\", %lu, %lu, %lu},\n", cost.mode,
             cost.structure, cost.operation, cost.fences, cost.lines_flushed, cost.bytes_logged);
    return text;
}

// Under undo it matters which page of a range faults first, and the B-tree moves ranges by
// memmove(3), which goes about it as the processor has it.
bool is_certain(const std::string &mode, const std::string &structure)
{
    return mode != "undo" || structure != "btree";
}

class Meter
{
  public:
    Meter(const std::string &mode, const map_ops &ops) : mode_(mode), ops_(ops)
    {
        pm_options how = test::options(PM_CREATE);
        how.max_size = 1 << 30;
        c_ = test::open(directory_ / "c.pm", how);
        map_ = ops_.create(c_.get());
        REQUIRE(map_);
        REQUIRE_OK(pm_setroot(c_.get(), map_, 0));
        for (uint64_t i = 0; i < KEYS; i++)
            REQUIRE(ops_.insert(c_.get(), map_, key_of(i), i) >= 0);
        REQUIRE_OK(pm_commit(c_.get()));
    }

    template <typename Operation> Cost measure(const char *name, Operation operation)
    {
        struct pm_stats before = test::stats(c_.get());
        for (uint64_t i = 0; i < OPERATIONS; i++) {
            operation(i);
            REQUIRE_OK(pm_commit(c_.get()));
        }
        struct pm_stats after = test::stats(c_.get());
        return {mode_.c_str(),
                ops_.name,
                name,
                after.fences - before.fences,
                after.lines_flushed - before.lines_flushed,
                after.bytes_logged - before.bytes_logged};
    }

    std::vector<Cost> all()
    {
        pm_container *c = c_.get();
        return {
            measure("insert",
                    [&](uint64_t i) { REQUIRE(ops_.insert(c, map_, key_of(KEYS + i), i) >= 0); }),
            measure("lookup",
                    [&](uint64_t i) {
                        uint64_t value;
                        REQUIRE(ops_.lookup(map_, key_of(i), &value));
                    }),
            measure("update",
                    [&](uint64_t i) { REQUIRE(ops_.insert(c, map_, key_of(i), i + 1) >= 0); }),
            measure("remove", [&](uint64_t i) { REQUIRE(ops_.remove(c, map_, key_of(i)) >= 0); }),
        };
    }

  private:
    std::string mode_;
    const map_ops &ops_;
    test::Directory directory_;
    test::Container c_;
    void *map_;
};

} // namespace

TEST_CASE("fences, lines written back and bytes logged, by structure and operation")
{
    std::string mode = test::mode(), expected, measured;
    for (const Cost &cost : golden)
        if (cost.mode == mode)
            expected += line_of(cost);
    for (const map_ops *ops : map_ops_all) {
        if (!is_certain(mode, ops->name))
            continue;
        Meter meter(mode, *ops);
        for (const Cost &cost : meter.all())
            measured += line_of(cost);
    }
    if (measured != expected)
        printf("The table for this mode is now\n%s", measured.c_str());
    REQUIRE(measured == expected);
}

TEST_CASE("bytes logged with the cleaner at work", "[log]")
{
    std::string mode = test::mode(), expected, measured;
    auto add = [](std::string &table, const Cleaned &row) {
        char text[200];
        snprintf(text, sizeof text, "    {\"%s\", \"%s\", %lu, %lu, %lu},\n", row.mode,
                 row.structure, row.records, row.bytes_logged, row.file_bytes);
        table += text;
    };
    for (const Cleaned &row : golden_cleaned)
        if (row.mode == mode)
            add(expected, row);
    for (const map_ops *ops : map_ops_all) {
        test::Directory directory;
        test::Container c = test::open(directory / "c.pm", test::small());
        void *map = ops->create(c.get());
        REQUIRE(map);
        REQUIRE_OK(pm_setroot(c.get(), map, 0));
        for (uint64_t i = 0; i < KEYS; i++)
            REQUIRE(ops->insert(c.get(), map, key_of(i), i) >= 0);
        REQUIRE_OK(pm_commit(c.get()));
        const struct pm_stats before = test::stats(c.get());
        for (uint64_t i = 0; i < CHURN; i++) {
            REQUIRE(ops->remove(c.get(), map, key_of(i)) >= 0);
            REQUIRE(ops->insert(c.get(), map, key_of(KEYS + i), i) >= 0);
            REQUIRE_OK(pm_commit(c.get()));
        }
        const struct pm_stats after = test::stats(c.get());
        add(measured, {mode.c_str(), ops->name, after.epoch - before.epoch - CHURN,
                       after.bytes_logged - before.bytes_logged, after.file_bytes});
    }
    if (measured != expected)
        printf("The table for this mode is now\n%s", measured.c_str());
    REQUIRE(measured == expected);
}
