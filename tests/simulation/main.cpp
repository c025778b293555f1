// simulate: crash a program at every event and see what its successors find.
//
//   simulate [OPTION...]             explore one setup
//   simulate --plan NAME [--mode M]  explore the setups of a plan (plans.cpp)
//
// A violation ends it with status 1 and the one command that repeats it.
#include "simulation/run.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using simulation::Run;

namespace
{

const char *const usage =
    "usage: simulate [--structure rbtree|btree|skiplist|hashmap] [--profile NAME] [--mode "
    "undo|redo|stores]\n"
    "                [--medium pmem|file] [--containers N] [--async N] [--concurrent]\n"
    "                [--seed N] [--transactions N] [--seeds N] [--nested N|all] [--depth N]\n"
    "                [--crash EVENT:FATE[:SEED]]...\n"
    "       simulate --plan ci|quick|soak [--mode undo|redo|stores] [--seed N] [--minutes N]\n";

struct Arguments {
    Run run;
    std::string plan;
    double minutes = 0;
};

uint64_t number(const std::string &text)
{
    return text == "all" ? UINT64_MAX : strtoull(text.c_str(), nullptr, 0);
}

// False if it makes no sense.
bool parse(int argc, char **argv, Arguments &a)
{
    Run &r = a.run;
    for (int i = 1; i < argc; i++) {
        std::string name = argv[i];
        if (name == "--concurrent") {
            r.setup.concurrent = true;
            continue;
        }
        if (i + 1 == argc)
            return false;
        std::string value = argv[++i];
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
    if (!parse(argc, argv, a)) {
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
        bool good = a.plan == "soak" ? simulation::soak(mode, seed, a.minutes)
                    : a.plan.empty() ? simulation::explore({a.run})
                                     : simulation::explore(simulation::plan(a.plan, mode, seed));
        return good ? 0 : 1;
    } catch (const std::exception &e) {
        fprintf(stderr, "simulate: %s\n", e.what());
        return 2;
    }
}
