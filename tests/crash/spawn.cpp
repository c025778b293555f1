#include "crash/spawn.hpp"

#include <cerrno>
#include <csignal>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace crash
{

Outcome run_and_kill(const std::vector<std::string> &arguments, unsigned delay_us)
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

    Outcome outcome{false, 0};
    char byte;
    if (read(ends[0], &byte, 1) == 1) { // ready
        usleep(delay_us);
        kill(child, SIGKILL);
        // A pipe keeps what was written before the kill.
        while (read(ends[0], &byte, 1) == 1)
            outcome.commits++;
    }
    close(ends[0]);
    int status;
    if (waitpid(child, &status, 0) != child)
        throw std::runtime_error("waitpid");
    outcome.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return outcome;
}

} // namespace crash
