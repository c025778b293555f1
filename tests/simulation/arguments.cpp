#include "simulation/arguments.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

namespace simulation
{

namespace
{

constexpr unsigned CONTAINERS_MAX = 1u << (32 - sim::UNIT_BITS);

// What every command may have.
void add_common(CLI::App &app, Setup &s)
{
    app.add_option("--mode", s.mode)->check(CLI::IsMember({"undo", "redo", "stores", "log", "log.stores"}));
    app.add_option("--seed", s.seed)->check(CLI::NonNegativeNumber);
}

// What only one run has.
void add_run(CLI::App &app, Run &run)
{
    Setup &s = run.setup;
    sim::Plan &p = run.plan;
    const std::map<std::string, uint64_t> all = {{"all", UINT64_MAX}};
    app.add_option("--structure", s.structure, "rbtree, btree, skiplist or hashmap");
    app.add_option("--profile", s.profile, "What is how likely: see workload.cpp");
    auto set_medium = [&s](const std::string &name) {
        s.medium = name == "file" ? sim::Kind::FILE : sim::Kind::PMEM;
    };
    app.add_option_function<std::string>("--medium", set_medium)
        ->check(CLI::IsMember({"pmem", "file"}));
    auto *containers =
        app.add_option("--containers", s.containers)->check(CLI::Range(1u, CONTAINERS_MAX));
    auto *async = app.add_option("--async", s.async, "Commits that are waited for together")
                      ->check(CLI::NonNegativeNumber);
    auto *threads = app.add_option("--threads", s.threads)->check(CLI::PositiveNumber);
    app.add_flag("--concurrent", s.concurrent, "With concurrent_stores");
    auto *full = app.add_flag("--full", s.full, "Now and then the disk is full");
    auto *moved = app.add_flag("--moved", s.moved, "Containers that move to other addresses");
    auto *elsewhere = app.add_flag("--elsewhere", s.elsewhere, "That lie at others, unmoved");
    for (CLI::Option *option : {containers, async, full})
        threads->excludes(option);
    for (CLI::Option *option : {containers, async, full, threads}) {
        moved->excludes(option);
        elsewhere->excludes(option);
    }
    moved->excludes(elsewhere);
    auto *compacted = app.add_flag("--compacted", s.compacted, "Containers that are compacted");
    for (CLI::Option *option : {containers, async, threads, moved, elsewhere})
        compacted->excludes(option);
    auto *discovered = app.add_flag("--discovered", s.discovered, "Whose commits find their data");
    for (CLI::Option *option : {containers, async, threads, moved, elsewhere, compacted})
        discovered->excludes(option);
    app.add_option("--checkpoints", s.checkpoints,
                   "Bytes of log between them; 1: one after each commit");
    app.add_flag("--bounded", s.bounded, "In as little memory as there can be");
    app.add_flag("--cleans", s.cleans, "The log engine's cleaner works at each commit");
    app.add_option("--transactions", p.transactions)->check(CLI::PositiveNumber);
    app.add_option("--seeds", p.seeds, "Random choices of what is lost, at each event")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--nested", p.nested, "Crashes of each recovery, or `all`")
        ->transform(CLI::Transformer(all).description(""))
        ->check(CLI::NonNegativeNumber);
    app.add_option("--depth", p.depth, "Crashes in a row")->check(CLI::PositiveNumber);
    auto add_crash = [&run](const std::vector<std::string> &words) {
        for (const std::string &word : words) {
            std::optional<sim::Crash> crash = sim::parse_crash(word);
            if (!crash)
                throw CLI::ValidationError("--crash", "no crash: " + word);
            run.crashes.push_back(*crash);
        }
    };
    app.add_option_function<std::vector<std::string>>("--crash", add_crash, "Only these, in a row")
        ->type_name("EVENT:FATE[:SEED]");
}

} // namespace

std::optional<int> parse(int argc, char **argv, Arguments &a)
{
    CLI::App app("Crash a program at every event and see what its successors find.");
    add_common(app, a.run.setup);
    CLI::Option *plan = app.add_option("--plan", a.plan, "Many runs: see plans.cpp")
                            ->check(CLI::IsMember({"ci", "quick", "soak"}));
    CLI::Option *list = app.add_option("--list", a.list, "The runs of a file, in that mode")
                            ->type_name("FILE")
                            ->excludes(plan);
    CLI::Option *minutes = app.add_option("--minutes", a.minutes, "How long --plan soak takes")
                               ->check(CLI::PositiveNumber);
    CLI::App *one = app.add_option_group("One run");
    add_run(*one, a.run);
    one->excludes(plan)->excludes(list);
    app.callback([&] {
        if ((a.plan == "soak") != (minutes->count() > 0))
            throw CLI::ValidationError("--minutes", "is for --plan soak, which must have it");
    });
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    return std::nullopt;
}

std::vector<Run> read_list(const std::string &path, const std::string &mode)
{
    std::vector<Run> runs;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::filesystem::path program = line.substr(0, line.find(' '));
        if (!program.filename().string().starts_with("simulate"))
            continue;
        Run run;
        CLI::App app;
        add_common(app, run.setup);
        add_run(app, run);
        try {
            app.parse(line, true);
        } catch (const CLI::ParseError &e) {
            throw std::invalid_argument(path + ": " + line + ": " + e.what());
        }
        if (run.setup.mode == mode)
            runs.push_back(run);
    }
    if (runs.empty())
        throw std::invalid_argument(path + " has nothing for mode " + mode);
    return runs;
}

} // namespace simulation
