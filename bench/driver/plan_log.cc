#include "driver/plan_log.h"

namespace bench
{

std::vector<Plan::Command> log_commands(const Plan &plan, size_t repetition,
                                        const Plan::Directories &directories)
{
    std::vector<Plan::Command> commands;
    const auto add_in_turn = [&](const std::vector<std::vector<std::string>> &group) {
        for (size_t i = 0; i < group.size(); i++)
            commands.push_back({group[(i + repetition) % group.size()]});
    };
    const std::vector<std::string> batches =
        plan.quick ? std::vector<std::string>{"1"} : std::vector<std::string>{"1", "100"};
    for (const char *pattern : {"in turn", "90/15", "at random"})
        for (const std::string &batch : batches) {
            const auto command = [&](const char *engine, const char *file) {
                return std::vector<std::string>{
                    plan.programs + "/bench_cleaner", engine, pattern, file, "64", batch,
                    directories.memory + "/c.pm"};
            };
            std::vector<std::string> small_chunks = command("log", "70");
            small_chunks.insert(small_chunks.end(), {"--segment", "65536"});
            add_in_turn({command("redo", "grows"), command("log", "roomy"), command("log", "grows"),
                         command("log", "70"), command("log", "80"), small_chunks});
        }
    std::vector<std::string> peers = {"libpm_undo_faults", "libpm_redo_faults", "libpm_log_faults",
                                      "pmemobj", "pmemobj_counted"};
    if (BENCH_PMCC)
        peers.insert(peers.end(), {"libpm_redo_stores", "libpm_log_stores"});
    const std::string values = plan.quick ? "20000" : "200000",
                      operations = plan.quick ? "10000" : "100000";
    for (const char *structure : {"sps", "rbtree", "btree", "hashmap"})
        for (const char *workload : {"insert", "update"}) {
            std::vector<std::vector<std::string>> group;
            for (const std::string &peer : peers)
                group.push_back({plan.programs + "/bench_values_" + peer, structure, workload,
                                 values, operations, directories.memory + "/values"});
            add_in_turn(group);
        }
    commands.push_back({{plan.programs + "/bench_bounded", plan.quick ? "256" : "1024",
                         plan.quick ? "32" : "128", directories.memory + "/bounded"}});
    if (!BENCH_PMCC)
        return commands;
    for (const char *bytes : {"1024", "4096", "65536"}) {
        std::vector<std::vector<std::string>> group;
        for (const char *peer : {"redo/stores", "log/stores", "log/put", "floor"})
            group.push_back({plan.programs + "/bench_objects", peer, bytes,
                             plan.quick || bytes == std::string("65536") ? "2000" : "50000", directories.memory + "/objects"});
        add_in_turn(group);
    }
    return commands;
}

} // namespace bench
