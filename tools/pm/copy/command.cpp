// Opens the source for reading and copies it with pm::container::copy(). The recovery that a reader does in
// memory goes into the copy. A signal sets a flag, which the report of progress returns. So an interrupted
// copy ends like a failed one.
#include "pm/copy/command.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <libpm.hpp>
#include <stdexcept>
#include <unistd.h>

namespace copy
{

namespace
{

struct Options {
    std::string from, to;
    bool snapshot = false;
};

volatile sig_atomic_t interrupted;

// Shows progress, if stderr is a terminal. The destructor ends the line.
class Progress
{
  public:
    ~Progress()
    {
        if (shown_ >= 0)
            fprintf(stderr, "\n");
    }
    bool operator()(uint64_t done, uint64_t total)
    {
        int percent = total == 0 ? 100 : (int)(done / (total / 100.0));
        if (isatty(STDERR_FILENO) && percent != shown_)
            fprintf(stderr, "\r%3d %% of %" PRIu64 " MiB", shown_ = percent, total >> 20);
        return !interrupted;
    }

  private:
    int shown_ = -1;
};

// Opens the source. pm_open() takes the lock of readers: it keeps writers away, and fails with EBUSY if
// a writer has the container open.
pm::container open(const Options &o)
{
    unsigned flags = PM_READONLY | (o.snapshot ? (unsigned)PM_ACCEPT_COPY : 0u);
    try {
        return pm::container(o.from, {.flags = flags, .module_pointers = PM_MODULES_MISSING_OK});
    } catch (const pm::error &e) {
        if (e.code().value() != EBUSY)
            throw;
        throw std::runtime_error(o.from + ": a program has it open for writing; let that program "
                                          "copy it by pm_copy(), or close it there first");
    }
}

void copy(const Options &o)
{
    // An interrupted copy leaves no file behind, like a failed one.
    for (int s : {SIGINT, SIGTERM, SIGHUP})
        signal(s, [](int) { interrupted = 1; });
    pm::container c = open(o);
    Progress progress;
    c.copy(o.to, [&](uint64_t done, uint64_t total) { return progress(done, total); });
}

} // namespace

void add_command(CLI::App &app)
{
    auto o = std::make_shared<Options>();
    CLI::App *command = app.add_subcommand(
        "copy", "Copy a container that no program has open for writing; what a crash has left is "
                "recovered in the copy");
    command->add_option("from", o->from, "The container")->required();
    command->add_option("to", o->to, "The copy, where no file must be")->required();
    command->add_flag("--snapshot", o->snapshot,
                      "Accept FROM although it is a copy that was made while a program had the "
                      "container open: it is a snapshot, or an image of one moment");
    command->callback([o] { copy(*o); });
}

} // namespace copy
