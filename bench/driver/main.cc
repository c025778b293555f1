/*
 * Runs all benchmarks several times over and writes what came out: markdown for people, JSON for
 * programs. Where a figure misses its target the table says so; that is no failure of the run.
 */
#include "driver/machine.h"
#include "driver/markdown.h"
#include "driver/plan.h"
#include "driver/process.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace bench
{
namespace
{

namespace fs = std::filesystem;

/** An empty directory in memory, gone with its scope; clear() empties it between two programs. */
class Scratch
{
  public:
    Scratch()
    {
        std::string name = "/dev/shm/pm-bench-XXXXXX";
        if (!mkdtemp(name.data()))
            throw fs::filesystem_error("mkdtemp", name,
                                       std::error_code(errno, std::generic_category()));
        path_ = name;
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    ~Scratch()
    {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }

    void clear()
    {
        for (const auto &entry : fs::directory_iterator(path_))
            fs::remove_all(entry);
    }
    const fs::path &path() const { return path_; }

  private:
    fs::path path_;
};

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

Results measure(const Plan &plan)
{
    setenv("PMEM_IS_PMEM_FORCE", "1", 1); // libpmemobj shall take tmpfs for persistent memory
    Results results;
    Scratch scratch;
    for (size_t repetition = 0; repetition < plan.repetitions(); repetition++) {
        auto commands = plan.commands(repetition, scratch.path());
        for (size_t i = 0; i < commands.size(); i++) {
            show_progress(repetition, plan.repetitions(), i, commands.size());
            for (const Sample &sample : run(commands[i]))
                results.add(sample);
            scratch.clear();
        }
    }
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
    if (const Target *target = table.target(row))
        if (auto met = target->met(row))
            out["target"] = {{"quantity", target->quantity.name()},
                             {target->at_least ? "at_least" : "at_most", target->limit},
                             {"met", *met}};
    return out;
}

void report(const Plan &plan, Results &results, const std::string &markdown_path,
            const std::string &json_path)
{
    auto machine = describe_machine();
    nlohmann::json json = {{"machine", machine}, {"repetitions", plan.repetitions()}};
    std::ostringstream markdown;

    markdown << "Medians of " << plan.repetitions() << " repetitions, the peers in turn within "
             << "each; ratios are medians of the ratios within a repetition.\n";
    for (const auto &[key, value] : machine)
        markdown << "- " << key << ": " << value << '\n';
    for (const Table &table : tables()) {
        write_markdown(markdown, table, results.rows(table.id));
        for (const Row &row : results.rows(table.id))
            json["tables"][table.id].push_back(to_json(table, row));
    }

    std::ofstream json_file(json_path);
    json_file << json.dump(1) << '\n';
    std::ofstream markdown_file;
    if (!markdown_path.empty())
        markdown_file.open(markdown_path);
    std::ostream &out = markdown_path.empty() ? std::cout : markdown_file;
    out << markdown.str() << std::flush;
    if (!json_file.flush() || !out)
        throw std::runtime_error("could not write the results");
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Plan plan{std::filesystem::canonical("/proc/self/exe").parent_path(), false};
    std::string markdown, json;
    CLI::App app("Time libpm beside malloc and libpmemobj");
    app.add_flag("--quick", plan.quick, "10^4 keys only, fewer repetitions: under a minute");
    app.add_option("--markdown", markdown, "file for the tables instead of standard output");
    app.add_option("--json", json, "file for the figures")->required();
    CLI11_PARSE(app, argc, argv);
    try {
        bench::Results results = bench::measure(plan);
        bench::report(plan, results, markdown, json);
    } catch (const std::exception &error) {
        std::cerr << '\n' << error.what() << '\n';
        return 1;
    }
}
