// simulate: crash a program at every event and see what its successors find.
//
//   simulate [OPTION...]             explore one setup
//   simulate --plan NAME [--mode M]  explore the setups of a plan (plans.cpp)
//   simulate --list FILE [--mode M]  explore what the file has commands for, in that mode
//
// A violation ends it with status 1 and the one command that repeats it.
#include "simulation/arguments.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace
{

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
    simulation::Arguments a;
    if (std::optional<int> status = simulation::parse(argc, argv, a))
        return *status;
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE})
        std::signal(signal, on_death);
    std::signal(SIGALRM, on_alarm);
    alarm(HANG_SECONDS);
    try {
        const std::string &mode = a.run.setup.mode;
        uint64_t seed = a.run.setup.seed;
        bool good;
        if (!a.list.empty())
            good = simulation::explore(simulation::read_list(a.list, mode));
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
