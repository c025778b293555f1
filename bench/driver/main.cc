/*
 * Runs all benchmarks several times over and writes what came out: markdown for people, JSON for
 * programs. Where a figure misses its target the table says so; that is no failure of the run.
 */
#include "driver/machine.h"
#include "driver/markdown.h"
#include "driver/means.h"
#include "driver/plan.h"
#include "driver/process.h"
#include "driver/scratch.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace bench
{
namespace
{

/** On a terminal one line that changes, elsewhere a line for each repetition. */
void show_progress(size_t repetition, size_t repetitions, size_t program, size_t programs)
{
    bool terminal = isatty(STDERR_FILENO), last = program + 1 == programs;
    if (terminal)
        std::cerr << "\r\33[K";
    if (terminal || program == 0)
        std::cerr << "repetition " << repetition + 1 << '/' << repetitions;
    if (terminal)
        std::cerr << ", program " << program + 1 << '/' << programs;
    if (terminal ? last : program == 0)
        std::cerr << '\n';
    std::cerr << std::flush;
}

/** Whether libpmem, in the programs to come, shall take every file for persistent memory. */
void pretend_pmem(bool pretend)
{
    const char *const variable = "PMEM_IS_PMEM_FORCE";
    if (pretend)
        setenv(variable, "1", 1);
    else
        unsetenv(variable);
}

Results measure(const Plan &plan, const std::string &file_directory)
{
    Results results;
    Scratch memory("/dev/shm"), file(file_directory);
    for (size_t repetition = 0; repetition < plan.repetitions(); repetition++) {
        auto commands = plan.commands(repetition, {memory.path(), file.path()});
        for (size_t i = 0; i < commands.size(); i++) {
            show_progress(repetition, plan.repetitions(), i, commands.size());
            pretend_pmem(commands[i].memory);
            for (const Sample &sample : run(words_of(commands[i], results)))
                results.add(sample);
            memory.clear();
            file.clear();
        }
    }
    add_means(results);
    return results;
}

nlohmann::json to_json(const Table &table, const Row &row)
{
    nlohmann::json out = {
        {"labels", row.labels}, {"unit", row.unit}, {"operations", row.operations}};
    for (const auto &[peer, values] : row.peers)
        out["peers"][peer] = {{"median", median(values)}, {"values", values}};
    for (const Quantity &ratio : table.ratios)
        if (auto value = ratio.of(row))
            out["ratios"][ratio.name()] = *value;
    for (const Target &target : table.targets_of(row))
        if (auto met = target.met(row))
            out["targets"].push_back({{"quantity", target.quantity.name()},
                                      {target.at_least ? "at_least" : "at_most", target.limit},
                                      {"met", *met}});
    return out;
}

struct Paths {
    std::string markdown, json; // files to write
    std::string file_directory; // of the part on ordinary files
};

void report(const Plan &plan, Results &results, const Paths &paths)
{
    auto machine = describe_machine(paths.file_directory);
    nlohmann::json json = {{"machine", machine}, {"repetitions", plan.repetitions()}};
    std::ostringstream markdown;

    markdown << "Medians of " << plan.repetitions() << " repetitions, the peers in turn within "
             << "each; ratios are medians of the ratios within a repetition.\n";
    for (const auto &[key, value] : machine)
        markdown << "- " << key << ": " << value << '\n';
    for (const Table &table : tables()) {
        auto rows = table.rows(results);
        if (rows.empty())
            continue;
        write_markdown(markdown, table, rows);
        for (const Row &row : rows)
            json["tables"][table.id].push_back(to_json(table, row));
    }

    std::ofstream json_file(paths.json);
    json_file << json.dump(1) << '\n';
    std::ofstream markdown_file;
    if (!paths.markdown.empty())
        markdown_file.open(paths.markdown);
    std::ostream &out = paths.markdown.empty() ? std::cout : markdown_file;
    out << markdown.str() << std::flush;
    if (!json_file.flush() || !out)
        throw std::runtime_error("could not write the results");
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Plan plan{std::filesystem::canonical("/proc/self/exe").parent_path(), false};
    bench::Paths paths;
    paths.file_directory = plan.programs;
    CLI::App app("Time libpm beside malloc, libpmemobj, and databases on files");
    app.add_flag("--quick", plan.quick, "structures of 10^5 keys only, fewer repetitions");
    app.add_option("--part", plan.part, "what to measure: libpm, or a client of it")
        ->check(CLI::IsMember({"libpm", "metradb", "nvmkv", "log", "lsm", "tiered"}));
    app.add_option("--markdown", paths.markdown, "file for the tables instead of standard output");
    app.add_option("--json", paths.json, "file for the figures")->required();
    app.add_option("--file-directory", paths.file_directory,
                   "directory on the file system to measure; default: where this program is");
    CLI11_PARSE(app, argc, argv);
    try {
        bench::require_disk(paths.file_directory);
        bench::Results results = bench::measure(plan, paths.file_directory);
        bench::report(plan, results, paths);
    } catch (const std::exception &error) {
        std::cerr << '\n' << error.what() << '\n';
        return 1;
    }
}
