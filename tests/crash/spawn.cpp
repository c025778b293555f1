#include "crash/spawn.hpp"

#include "common/mode.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace crash
{

namespace
{

// Starts the program; `*output` is the end of the pipe to read its standard output from.
pid_t start(const std::vector<std::string> &arguments, int *output)
{
    int ends[2];
    if (pipe(ends) != 0)
        throw std::runtime_error("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    std::vector<char *> argv;
    for (const std::string &argument : arguments)
        argv.push_back(const_cast<char *>(argument.c_str()));
    argv.push_back(nullptr);
    pid_t child;
    int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0)
        throw std::runtime_error("cannot start " + arguments[0]);
    *output = ends[0];
    return child;
}

Outcome watch(const std::vector<std::string> &arguments, bool kill_it, uint64_t commits,
              unsigned delay_us)
{
    int output;
    pid_t child = start(arguments, &output);
    Outcome outcome{};
    char byte;
    std::string line;
    while (read(output, &byte, 1) == 1 && byte != '\n')
        line += byte;
    if (!line.empty()) {
        outcome.ready = true;
        outcome.found = std::stoull(line);
        while (kill_it && outcome.commits < commits && read(output, &byte, 1) == 1)
            outcome.commits++;
        if (kill_it) {
            usleep(delay_us);
            kill(child, SIGKILL);
        }
        // A pipe keeps what was written before the end.
        while (read(output, &byte, 1) == 1)
            outcome.commits++;
    }
    close(output);
    if (waitpid(child, &outcome.status, 0) != child)
        throw std::runtime_error("waitpid");
    return outcome;
}

} // namespace

Outcome run(const std::vector<std::string> &arguments)
{
    return watch(arguments, false, 0, 0);
}

Outcome run_and_kill(const std::vector<std::string> &arguments, uint64_t commits, unsigned delay_us)
{
    return watch(arguments, true, commits, delay_us);
}

std::string suffix()
{
    return test::stores() ? "_stores" : "";
}

uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? std::stoull(text) : otherwise;
}

} // namespace crash
