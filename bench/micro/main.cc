/* Runs one micro-benchmark once, in a process of its own. */
#include "micro/micro.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

int main(int argc, char **argv)
{
    using bench_function = void (*)(const std::string &);
    const std::map<std::string, bench_function> benches = {
        {"fault", bench::fault},
        {"allocate", bench::allocate},
        {"chase", bench::chase},
        {"update", bench::update},
        {"memory", bench::memory},
        {"recovery", bench::recovery},
        {"recovery-victim", bench::recovery_victim},
        {"recovery-victim-of-large-commit", bench::recovery_victim_of_large_commit},
    };
    std::string name, directory;
    CLI::App app("Run one micro-benchmark once");
    app.add_option("name", name)->required()->check(CLI::IsMember(&benches));
    app.add_option("directory", directory, "an empty directory for its files")->required();
    CLI11_PARSE(app, argc, argv);
    try {
        benches.at(name)(directory);
    } catch (const std::exception &error) {
        std::cerr << name << ": " << error.what() << '\n';
        return 1;
    }
}
