#include "driver/plan.h"

#include "driver/plan_log.h"
#include "driver/plan_lsm.h"
#include "driver/plan_tiered.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>

namespace bench
{
namespace
{

using Commands = std::vector<Plan::Command>;

constexpr bool pmcc = BENCH_PMCC; // programs compiled with the pass are there
constexpr size_t slice = 2000;    // insertions and removals timed at a time
constexpr size_t lookups = 200'000;

/** Runs of programs that must keep their order; who goes first changes by `turn`. */
template <class Group>
void append_in_turn(Commands &commands, const std::vector<Group> &groups, size_t turn)
{
    for (size_t i = 0; i < groups.size(); i++)
        for (const Plan::Command &command : groups[(i + turn) % groups.size()])
            commands.push_back(command);
}

void append_structures(Commands &commands, const Plan &plan, size_t repetition,
                       const std::string &directory)
{
    constexpr size_t few = 10'000, usual = 100'000, many = 1'000'000;
    const std::vector<size_t> sizes =
        plan.quick ? std::vector{usual} : std::vector{few, usual, many};

    for (size_t keys : sizes)
        for (const char *structure : {"rbtree", "btree", "skiplist", "hashmap"})
            for (const char *order : {"random", "sequential"}) {
                // The largest size takes most of the time. In order, it differs little from the usual one.
                if (keys == many && (order == std::string("sequential") || repetition % 2 != 0))
                    continue;
                const std::vector<std::string> cell = {structure, order, std::to_string(keys)};
                auto command = [&](const std::string &peer) {
                    Plan::Command command{{plan.programs + "/bench_" + peer}};
                    auto &words = command.words;
                    words.insert(words.end(), cell.begin(), cell.end());
                    words.insert(words.end(), {std::to_string(slice), std::to_string(lookups),
                                               directory + "/map"});
                    return command;
                };
                std::vector<Commands> groups = {{command("malloc")},
                                                {command("libpm_undo_faults")},
                                                {command("libpm_redo_faults")},
                                                {command("libpm_log_faults")},
                                                {command("pmemobj")}};
                if (keys == usual)
                    groups.push_back({command("pmemobj_counted")});
                if (pmcc) {
                    Plan::Command floor = command("floor"), by_hand = command("by_hand");
                    floor.log_of = by_hand.log_of = cell;
                    groups.push_back({command("libpm_redo_stores"), floor, by_hand});
                    groups.push_back({command("libpm_log_stores")});
                }
                append_in_turn(commands, groups, repetition);
                if (pmcc)
                    commands.push_back({{plan.programs + "/bench_recording", structure, order,
                                         std::to_string(keys), directory}});
            }
}

void append_micros(Commands &commands, const Plan &plan, const std::string &directory)
{
    std::vector<const char *> micros = {"fault", "chase", "allocate", "update", "memory"};
    if (!plan.quick) // the chase again: how fast DRAM is depends on where pages happen to lie
        micros.insert(micros.end(), {"chase", "recovery", "elsewhere"});
    for (const char *micro : micros)
        commands.push_back({{plan.programs + "/bench_micro", micro, directory}});
    if (pmcc) {
        for (const char *micro : {"allocate", "update", "memory"})
            commands.push_back({{plan.programs + "/bench_micro_stores", micro, directory}});
        commands.push_back({{plan.programs + "/marks/bench_marks"}});
        for (const char *variant : {"plain", "pmcc"})
            commands.push_back({{plan.programs + "/discover/bench_discover_" + variant}});
        commands.push_back({{plan.programs + "/discover/bench_discover_commit", directory}});
    }
}

void append_files(Commands &commands, const Plan &plan, size_t repetition,
                  const std::string &directory)
{
    struct Case {
        size_t value_size, puts, commits;
    };
    static constexpr Case cases[] = {
        {100, 1, 2000}, {100, 10, 1000}, {100, 100, 300}, {8, 1, 2000}};

    if (!plan.quick && repetition % 2 != 0)
        return;
    for (const Case &c : std::span(cases).first(plan.quick ? 1 : std::size(cases))) {
        auto command = [&](const std::string &peer) {
            return Plan::Command{{plan.programs + "/bench_file_" + peer, directory,
                                  std::to_string(c.value_size), std::to_string(c.puts),
                                  std::to_string(plan.quick ? c.commits / 10 : c.commits)},
                                 false};
        };
        auto group = [&](const std::string &peer) {
            Plan::Command single = command(peer), shared = single;
            shared.words.push_back("--group");
            return Commands{single, shared};
        };
        std::vector<Commands> groups = {{command("lmdb")},          {command("sqlite")},
                                        {command("leveldb")},       {command("rocksdb")},
                                        group("libpm_redo_faults"), group("libpm_log_faults")};
        if (pmcc)
            for (const char *peer : {"libpm_log_stores", "libpm_redo_stores"})
                groups.insert(groups.begin(), group(peer));
        append_in_turn(commands, groups, repetition);
    }
}

void append_metradb(Commands &commands, const Plan &plan, size_t repetition,
                    const std::string &directory)
{
    const std::string pairs = plan.quick ? "50000" : "250000", bytes = "1024";
    auto command = [&](const char *what, const char *store) {
        return Plan::Command{
            {plan.programs + "/bench_metradb", what, store, directory, pairs, bytes}};
    };
    std::vector<Commands> groups;
    for (const char *store : {"METRADB", "hash map tx", "hash map atomic", "ctree", "btree",
                              "rbtree", "METRADB, 256 MiB"})
        groups.push_back({command("latency", store)});
    append_in_turn(commands, groups, repetition);
    for (const char *store : {"METRADB", "hash map tx"})
        for (const char *threads : {"1", "2"}) {
            commands.push_back(command("threads", store));
            commands.back().words.push_back(threads);
        }
    commands.push_back({{plan.programs + "/bench_metradb_parts", directory, pairs, bytes}});
}

void append_nvmkv(Commands &commands, const Plan &plan, size_t repetition,
                  const Plan::Directories &directories)
{
    for (const auto &[medium, directory] :
         {std::pair{"ordinary file", directories.file}, {"memory", directories.memory}}) {
        auto command = [&](const char *what, const char *peer, bool sync = false) {
            Plan::Command command{{plan.programs + "/bench_nvmkv", what, peer, medium, directory},
                                  false};
            if (sync)
                command.words.push_back("--sync");
            return Commands{command};
        };
        std::vector<Commands> groups;
        for (const char *peer : {"NVMKV", "FTL", "LevelDB"})
            for (bool sync : {false, true})
                groups.push_back(command("threads", peer, sync));
        append_in_turn(commands, groups, repetition);
        for (const char *what : {"pools", "ycsb"})
            for (bool sync : {false, true})
                append_in_turn<Commands>(
                    commands, {command(what, "NVMKV", sync), command(what, "LevelDB", sync)},
                    repetition);
    }
    commands.push_back(
        {{plan.programs + "/bench_nvmkv", "collisions", "NVMKV", "memory", directories.memory}});
}

} // namespace

std::vector<Plan::Command> Plan::commands(size_t repetition, const Directories &directories) const
{
    Commands commands;
    if (part == "metradb") {
        append_metradb(commands, *this, repetition, directories.memory);
        return commands;
    }
    if (part == "nvmkv") {
        append_nvmkv(commands, *this, repetition, directories);
        return commands;
    }
    if (part == "log")
        return log_commands(*this, repetition, directories);
    if (part == "lsm")
        return lsm_commands(*this, repetition, directories);
    if (part == "tiered")
        return tiered_commands(*this, repetition, directories);
    append_structures(commands, *this, repetition, directories.memory);
    append_micros(commands, *this, directories.memory);
    append_files(commands, *this, repetition, directories.file);
    return commands;
}

std::vector<std::string> words_of(const Plan::Command &command, Results &results)
{
    auto words = command.words;
    if (command.log_of.empty())
        return words;

    words.push_back("--log-bytes");
    auto options = words.size();
    for (const Row &row : results.rows("log"))
        if (std::equal(command.log_of.begin(), command.log_of.end(), row.labels.begin()))
            if (auto bytes = row.value("redo/stores"))
                words.push_back(std::to_string(std::llround(*bytes)));
    if (words.size() == options)
        throw std::runtime_error("there is no measured log to follow");
    return words;
}

} // namespace bench
