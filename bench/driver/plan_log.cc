#include "driver/plan_log.h"

namespace bench
{
namespace
{

using Words = std::vector<std::string>;
using Commands = std::vector<Plan::Command>;

constexpr const char *structures[] = {"sps", "rbtree", "btree", "hashmap"};

void append_in_turn(Commands &commands, const std::vector<Words> &group, size_t turn,
                    bool memory = true)
{
    for (size_t i = 0; i < group.size(); i++)
        commands.push_back({group[(i + turn) % group.size()], memory});
}

Words and_stores(Words peers)
{
    if (BENCH_PMCC)
        peers.insert(peers.end(), {"libpm_redo_stores", "libpm_log_stores"});
    return peers;
}

void append_cleaner(Commands &commands, const Plan &plan, size_t repetition,
                    const std::string &directory)
{
    const Words batches = plan.quick ? Words{"1"} : Words{"1", "100"};
    for (const char *pattern : {"in turn", "90/15", "at random"})
        for (const std::string &batch : batches) {
            const auto command = [&](const char *engine, const char *file,
                                     const char *segment = nullptr) {
                Words words = {plan.programs + "/bench_cleaner",
                               engine,
                               pattern,
                               file,
                               "64",
                               batch,
                               directory + "/c.pm"};
                if (segment)
                    words.insert(words.end(), {"--segment", segment});
                return words;
            };
            std::vector<Words> group = {command("redo", "grows"), command("log", "roomy"),
                                        command("log", "grows"),  command("log", "70"),
                                        command("log", "80"),     command("log", "70", "65536")};
            if (batch == "1") // larger commits find no room
                group.push_back(command("log", "90", "65536"));
            append_in_turn(commands, group, repetition);
        }
}

void append_values(Commands &commands, const Plan &plan, size_t repetition,
                   const std::string &directory)
{
    const Words peers = and_stores({"libpm_undo_faults", "libpm_redo_faults", "libpm_log_faults",
                                    "pmemobj", "pmemobj_counted"});
    const std::string values = plan.quick ? "20000" : "200000",
                      operations = plan.quick ? "10000" : "100000";
    for (const char *structure : structures)
        for (const char *workload : {"insert", "update"}) {
            std::vector<Words> group;
            for (const std::string &peer : peers)
                group.push_back({plan.programs + "/bench_values_" + peer, structure, workload,
                                 values, operations, directory + "/values"});
            append_in_turn(commands, group, repetition);
        }
}

/** The same on slow memory. Undo writes whole pages, so it has fewer operations. */
void append_nvm(Commands &commands, const Plan &plan, size_t repetition,
                const std::string &directory)
{
    for (const char *structure : structures)
        for (const char *workload : {"insert", "update"})
            for (const char *takes : {"stalls", "drains"}) {
                std::vector<Words> group;
                for (const std::string &peer : and_stores({"libpm_undo_faults", "pmemobj"})) {
                    const bool few = plan.quick || peer == "libpm_undo_faults";
                    group.push_back({plan.programs + "/bench_nvm_" + peer, structure, workload,
                                     plan.quick ? "20000" : "200000", few ? "5000" : "50000",
                                     directory + "/values", "--nvm", takes});
                }
                append_in_turn(commands, group, repetition);
            }
}

void append_objects(Commands &commands, const Plan &plan, size_t repetition,
                    const std::string &directory)
{
    for (const char *bytes : {"1024", "4096", "65536"}) {
        std::vector<Words> group;
        for (const char *peer : {"redo/stores", "log/stores", "log/put", "floor"})
            group.push_back({plan.programs + "/bench_objects", peer, bytes,
                             plan.quick || bytes == std::string("65536") ? "2000" : "50000",
                             directory + "/objects"});
        append_in_turn(commands, group, repetition);
    }
}

void append_bounded(Commands &commands, const Plan &plan, const std::string &directory)
{
    const Words command = {plan.programs + "/bench_bounded", plan.quick ? "256" : "1024",
                           plan.quick ? "32" : "128", directory + "/bounded"};
    commands.push_back({command});
    for (const char *order : {"random", "together"}) {
        Words crash = command;
        crash.insert(crash.end(), {"--behind", plan.quick ? "16" : "64", "--order", order});
        commands.push_back({crash});
    }
}

/** What is counted, and is the same in each repetition. */
void append_counts(Commands &commands, const Plan &plan, const std::string &directory)
{
    for (const char *bytes : {"128", "1024"})
        for (const char *private_mebibytes : {"0", "32"})
            commands.push_back({{plan.programs + "/bench_map", "256", bytes, private_mebibytes,
                                 directory + "/map"}});
    for (const char *workload : {"W1", "W2", "W3"})
        for (const Words &peer : {Words{"log"}, {"log", "70"}, {"redo"}, {"libpmemobj"}}) {
            Words words = {plan.programs + "/bench_fragments", peer[0], workload, "32",
                           directory + "/fragments"};
            if (peer.size() > 1)
                words.insert(words.end(), {"--percent", peer[1]});
            commands.push_back({words});
        }
}

/** Bytes to the disk. */
void append_files(Commands &commands, const Plan &plan, size_t repetition,
                  const std::string &directory)
{
    const std::string keys = plan.quick ? "100000" : "1000000",
                      commits = plan.quick ? "200" : "2000";
    std::vector<Words> group = {{plan.programs + "/bench_file_append", directory, "512", commits,
                                 "--row", "100 B", "1", keys}};
    for (const std::string &peer : and_stores({}))
        group.push_back({plan.programs + "/bench_file_" + peer, directory, "100", "1", commits,
                         "--keys", keys, "--updates"});
    append_in_turn(commands, group, repetition, false);
}

} // namespace

std::vector<Plan::Command> log_commands(const Plan &plan, size_t repetition,
                                        const Plan::Directories &directories)
{
    Commands commands;
    append_cleaner(commands, plan, repetition, directories.memory);
    append_values(commands, plan, repetition, directories.memory);
    append_nvm(commands, plan, repetition, directories.memory);
    append_bounded(commands, plan, directories.memory);
    if (repetition == 0)
        append_counts(commands, plan, directories.memory);
    append_files(commands, plan, repetition, directories.file);
    if (BENCH_PMCC)
        append_objects(commands, plan, repetition, directories.memory);
    return commands;
}

} // namespace bench
