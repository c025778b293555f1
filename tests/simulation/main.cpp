// simulate: crash a program at every event and see what its successors find.
//
//   simulate [OPTION...]             explore one setup
//   simulate --plan NAME [--mode M]  explore the setups of a plan (plans.cpp)
//   simulate --list FILE [--mode M]  explore what the file has commands for, in that mode
//
// A violation ends it with status 1 and the one command that repeats it.
#include "simulation/run.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

using simulation::Run;

namespace
{

const char *const usage =
    "usage: simulate [--structure rbtree|btree|skiplist|hashmap] [--profile NAME] [--mode "
    "undo|redo|stores]\n"
    "                [--medium pmem|file] [--containers N] [--async N] [--concurrent] [--full] "
    "[--moved]\n"
    "                [--threads N] [--seed N] [--transactions N] [--seeds N] [--nested N|all] "
    "[--depth N]\n"
    "                [--crash EVENT:FATE[:SEED]]...\n"
    "       simulate --plan ci|quick|soak [--mode undo|redo|stores] [--seed N] [--minutes N]\n"
    "       simulate --list FILE [--mode undo|redo|stores]\n";

struct Arguments {
    Run run;
    std::string plan, list;
    double minutes = 0;
};

uint64_t number(const std::string &text)
{
    return text == "all" ? UINT64_MAX : strtoull(text.c_str(), nullptr, 0);
}

// False if it makes no sense.
bool parse(const std::vector<std::string> &words, Arguments &a)
{
    Run &r = a.run;
    for (size_t i = 1; i < words.size(); i++) {
        const std::string &name = words[i];
        bool *flag = name == "--concurrent" ? &r.setup.concurrent
                     : name == "--full"     ? &r.setup.full
                     : name == "--moved"    ? &r.setup.moved
                                            : nullptr;
        if (flag) {
            *flag = true;
            continue;
        }
        if (i + 1 == words.size())
            return false;
        const std::string &value = words[++i];
        if (name == "--structure")
            r.setup.structure = value;
        else if (name == "--profile")
            r.setup.profile = value;
        else if (name == "--mode")
            r.setup.mode = value;
        else if (name == "--medium")
            r.setup.medium = value == "file" ? sim::Kind::FILE : sim::Kind::PMEM;
        else if (name == "--containers")
            r.setup.containers = (unsigned)number(value);
        else if (name == "--async")
            r.setup.async = (unsigned)number(value);
        else if (name == "--threads")
            r.setup.threads = (unsigned)number(value);
        else if (name == "--seed")
            r.setup.seed = number(value);
        else if (name == "--transactions")
            r.plan.transactions = number(value);
        else if (name == "--seeds")
            r.plan.seeds = number(value);
        else if (name == "--nested")
            r.plan.nested = number(value);
        else if (name == "--depth")
            r.plan.depth = number(value);
        else if (name == "--plan")
            a.plan = value;
        else if (name == "--list")
            a.list = value;
        else if (name == "--minutes")
            a.minutes = strtod(value.c_str(), nullptr);
        else if (std::optional<sim::Crash> crash = sim::parse_crash(value);
                 name == "--crash" && crash)
            r.crashes.push_back(*crash);
        else
            return false;
    }
    return true;
}

// The runs of a file that has commands as we print them, one a line, and other lines in between.
std::vector<Run> read_list(const std::string &path, const std::string &mode)
{
    std::vector<Run> runs;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream text(line);
        std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
        Arguments a;
        if (words.empty() ||
            !std::filesystem::path(words[0]).filename().string().starts_with("simulate"))
            continue;
        if (!parse(words, a))
            throw std::invalid_argument(path + ": " + line);
        if (a.run.setup.mode == mode)
            runs.push_back(a.run);
    }
    if (runs.empty())
        throw std::invalid_argument(path + " has nothing for mode " + mode);
    return runs;
}

[[noreturn]] void die(const std::string &why)
{
    std::string text =
        "VIOLATION: " + why + "\nrepeat with: " + simulation::current_command() + "\n";
    _exit(write(STDOUT_FILENO, text.data(), text.size()) < 0 ? 2 : 1);
}

// A recovery, or a check of what it left, that itself dies.
void on_death(int signal)
{
    die(strsignal(signal));
}

// A recovery that never ends: many times what any takes.
constexpr int HANG_SECONDS = 30;

void on_alarm(int)
{
    static uint64_t before = UINT64_MAX;
    uint64_t now = simulation::current_crashes();
    if (now == before)
        die("it hangs");
    before = now;
    alarm(HANG_SECONDS);
}

} // namespace

int main(int argc, char **argv)
{
    Arguments a;
    if (!parse({argv, argv + argc}, a)) {
        fputs(usage, stderr);
        return 2;
    }
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE})
        std::signal(signal, on_death);
    std::signal(SIGALRM, on_alarm);
    alarm(HANG_SECONDS);
    try {
        const std::string &mode = a.run.setup.mode;
        uint64_t seed = a.run.setup.seed;
        bool good;
        if (!a.list.empty())
            good = simulation::explore(read_list(a.list, mode));
        else if (a.plan.empty())
            good = simulation::explore({a.run});
        else if (a.plan == "soak")
            good = simulation::soak(mode, seed, a.minutes);
        else
            good = simulation::explore(simulation::plan(a.plan, mode, seed),
                                       a.plan == "ci" ? simulation::states_demanded(mode) : 0);
        return good ? 0 : 1;
    } catch (const std::exception &e) {
        fprintf(stderr, "simulate: %s\n", e.what());
        return 2;
    }
}
