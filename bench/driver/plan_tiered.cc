#include "driver/plan_tiered.h"

namespace bench
{

std::vector<Plan::Command> tiered_commands(const Plan &plan, size_t repetition,
                                           const Plan::Directories &directories)
{
    std::vector<Plan::Command> commands;
    /* The peers of a program are in turn; the order changes with the repetition. */
    const auto add = [&](const char *program, const std::string &first,
                         std::vector<std::string> peers, size_t count, const std::string &memory) {
        std::string words = first;
        for (size_t i = 0; i < peers.size(); i++)
            words += (words.empty() ? "" : ",") + peers[(i + repetition) % peers.size()];
        commands.push_back({{plan.programs + "/bench_tiered_" + program, words,
                             std::to_string(count), memory, directories.file},
                            false});
    };
    const size_t points = plan.quick ? 1'000'000 : 10'000'000;
    add("kmeans", "make", {"no-pm", "all-pm"}, points, directories.memory);
    if (!plan.quick) /* memory is limited, and /dev/shm is memory: the container is on the disk */
        add("kmeans", "make", {"no-pm-capped", "all-pm"}, points, directories.file);
    add("graph", "make", {"no-pm", "all-pm", "select-pm"}, 20'000, directories.memory);
    add("person", "make all-pm,make select-pm,make sqlite,make rocksdb",
        {"all-pm", "select-pm", "sqlite", "rocksdb"}, plan.quick ? 20'000 : 100'000,
        directories.memory);
    add("disk", "", {"files", "rocksdb"}, 20'000, directories.memory);
    commands.push_back({{BENCH_SOURCES "/tiered/placement.sh", BENCH_PM_TIER, plan.programs,
                         BENCH_SOURCES, directories.memory, directories.file},
                        false});
    add("access", "", {"tiered"}, 0, directories.memory);
    add("access_profiled", "", {"tiered"}, 0, directories.memory);
    return commands;
}

} // namespace bench
