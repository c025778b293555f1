/* Runs one micro-benchmark once, in a process of its own. */
#include "micro/micro.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <map>

int main(int argc, char **argv)
{
    using bench_function = std::function<void(const std::string &, const bench::Mode &)>;
    auto all_modes = [](void (*bench)(const std::string &)) {
        return [=](const std::string &directory, const bench::Mode &) { bench(directory); };
    };
    const std::map<std::string, bench_function> benches = {
        {"fault", all_modes(bench::fault)},
        {"chase", all_modes(bench::chase)},
        {"allocate", all_modes(bench::allocate)},
        {"update", all_modes(bench::update)},
        {"memory", all_modes(bench::memory)},
        {"recovery", all_modes(bench::recovery)},
        {"elsewhere", all_modes(bench::elsewhere)},
        {"recovery-victim", bench::recovery_victim},
        {"recovery-victim-of-large-commit", bench::recovery_victim_of_large_commit},
    };
    std::string name, directory, mode_name = bench::modes[0].name;
    CLI::App app("Run one micro-benchmark once");
    app.add_option("name", name)->required()->check(CLI::IsMember(&benches));
    app.add_option("directory", directory, "an empty directory for its files")->required();
    app.add_option("mode", mode_name, "of a victim");
    CLI11_PARSE(app, argc, argv);
    try {
        for (const bench::Mode &mode : bench::modes)
            if (mode_name == mode.name)
                benches.at(name)(directory, mode);
    } catch (const std::exception &error) {
        std::cerr << name << ": " << error.what() << '\n';
        return 1;
    }
}
