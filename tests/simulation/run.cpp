#include "simulation/run.hpp"

#include "simulation/compacting.hpp"
#include "simulation/discovering.hpp"
#include "simulation/moving.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace simulation
{

namespace
{

// What the handler of a deadly signal asks for.
const Run *the_run;
const sim::Explorer *the_explorer;

// A directory of its own, on tmpfs.
class Directory
{
  public:
    Directory() : path_("/dev/shm/libpm-simulate-XXXXXX")
    {
        if (!mkdtemp(path_.data()))
            throw std::runtime_error("cannot make a directory in /dev/shm");
    }
    ~Directory()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string operator/(const std::string &name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

double seconds()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Of the clock, and of this process on the processor.
struct Time {
    double wall = seconds(), cpu = (double)clock() / CLOCKS_PER_SEC;
};

void report(const char *what, const sim::Counts &c, uint64_t checks, const Time &start)
{
    Time now;
    double cpu = now.cpu - start.cpu;
    printf("%s: %llu events, %llu crashes; %llu distinct states after power failure, %llu after "
           "the process died; %llu recoveries, %llu checks in %.1f s; %.1f s of CPU time, %.0f "
           "recoveries a second of it\n",
           what, (unsigned long long)c.events, (unsigned long long)c.crashes,
           (unsigned long long)c.states, (unsigned long long)c.deaths,
           (unsigned long long)c.recoveries, (unsigned long long)checks, now.wall - start.wall, cpu,
           (double)c.recoveries / cpu);
    fflush(stdout);
}

struct Totals {
    sim::States states; // of all runs
    sim::Counts counts;
    uint64_t checks = 0;
};

bool explore_one(const Run &run, Totals &totals)
{
    Time start;
    Directory directory;
    std::vector<std::string> paths;
    for (unsigned i = 0; i < run.setup.containers; i++)
        paths.push_back(directory / std::to_string(i));
    sim::seed_ids(run.setup.seed);
    sim::Device device(run.setup.medium, paths);
    std::unique_ptr<Program> subject;
    if (run.setup.moved || run.setup.elsewhere)
        subject = std::make_unique<Moving>(run.setup);
    else if (run.setup.compacted)
        subject = std::make_unique<Compacting>(run.setup);
    else if (run.setup.discovered)
        subject = std::make_unique<Discovering>(run.setup);
    else
        subject = std::make_unique<Subject>(run.setup);
    sim::Explorer explorer(device, *subject, run.plan, totals.states);
    the_run = &run;
    the_explorer = &explorer;
    bool good = true;
    try {
        if (run.crashes.empty())
            explorer.explore();
        else
            explorer.repeat(run.crashes);
    } catch (const sim::Violation &v) {
        printf("VIOLATION: %s\nrepeat with: %s\n", v.what(), current_command().c_str());
        good = false;
    }
    the_explorer = nullptr;
    report(command(run).c_str(), explorer.counts(), subject->checks(), start);
    totals.counts += explorer.counts();
    totals.checks += subject->checks();
    return good;
}

} // namespace

std::string command(const Run &run)
{
    const Setup &s = run.setup;
    std::string text = "simulate --structure " + s.structure + " --profile " + s.profile +
                       " --mode " + s.mode + " --seed " + std::to_string(s.seed) +
                       " --transactions " + std::to_string(run.plan.transactions);
    if (s.medium == sim::Kind::FILE)
        text += " --medium file";
    if (s.containers != 1)
        text += " --containers " + std::to_string(s.containers);
    if (s.async)
        text += " --async " + std::to_string(s.async);
    if (s.concurrent)
        text += " --concurrent";
    if (s.full)
        text += " --full";
    if (s.moved)
        text += " --moved";
    if (s.elsewhere)
        text += " --elsewhere";
    if (s.compacted)
        text += " --compacted";
    if (s.discovered)
        text += " --discovered";
    if (s.checkpoints)
        text += " --checkpoints " + std::to_string(s.checkpoints);
    if (s.bounded)
        text += " --bounded";
    if (s.cleans)
        text += " --cleans";
    if (s.threads != 1)
        text += " --threads " + std::to_string(s.threads);
    if (run.plan.nested == UINT64_MAX)
        text += " --nested all"; // more is looked at then, so events have other contents
    return text;
}

std::string current_command()
{
    std::string text = program_invocation_name;
    if (the_run)
        text += command(*the_run).substr(strlen("simulate"));
    if (the_explorer)
        for (const sim::Crash &crash : the_explorer->path())
            text += " --crash " + sim::to_string(crash);
    return text;
}

uint64_t current_crashes()
{
    static uint64_t idle;
    return the_explorer ? the_explorer->counts().crashes + the_explorer->counts().recoveries
                        : idle++;
}

bool explore(const std::vector<Run> &runs, uint64_t states_min)
{
    Totals totals;
    Time start;
    for (const Run &run : runs)
        if (!explore_one(run, totals))
            return false;
    if (runs.size() > 1)
        report("in all", totals.counts, totals.checks, start);
    if (totals.counts.states >= states_min)
        return true;
    printf("TOO FEW STATES: %llu are demanded\n", (unsigned long long)states_min);
    return false;
}

bool soak(const std::string &mode, uint64_t seed, double minutes)
{
    Totals totals;
    Time start;
    double end = start.wall + minutes * 60;
    bool good = true;
    for (; good && seconds() < end; seed++)
        for (const Run &run : plan("ci", mode, seed))
            if (good && seconds() < end)
                good = explore_one(run, totals);
    report("in all", totals.counts, totals.checks, start);
    return good;
}

} // namespace simulation
