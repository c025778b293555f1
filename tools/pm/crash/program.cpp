#include "pm/crash/program.hpp"

#include "pm/crash/tape.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" { // which the header of glibc 2.36 does not say
#include <sys/pidfd.h>
}

namespace crash
{

static volatile sig_atomic_t interrupted;

static std::vector<char *> pointers(const std::vector<std::string> &words)
{
    std::vector<char *> all;
    for (const std::string &word : words)
        all.push_back(const_cast<char *>(word.c_str()));
    all.push_back(nullptr);
    return all;
}

// In a process group of its own, so that all of it can be killed.
static pid_t spawn(const Start &start)
{
    std::vector<std::string> environment = start.environment;
    for (char **e = environ; *e; e++) {
        std::string name(*e, strcspn(*e, "=") + 1);
        bool ours = false;
        for (const std::string &entry : start.environment)
            ours |= entry.compare(0, name.size(), name) == 0;
        if (!ours)
            environment.emplace_back(*e);
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // In another process group it would be stopped when it reads from the terminal.
    if (!start.input || isatty(STDIN_FILENO))
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!start.output.empty()) {
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, start.output.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
        if (start.errors_too)
            posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    }
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t id = -1;
    int error = posix_spawnp(&id, start.arguments[0].c_str(), &actions, &attributes,
                             pointers(start.arguments).data(), pointers(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        throw Error("cannot run " + start.arguments[0] + ": " + strerror(error));
    return id;
}

End run(const Start &start)
{
    check_interrupted();
    pid_t id = spawn(start);
    pollfd ended = {pidfd_open(id, 0), POLLIN, 0};
    int timeout = start.seconds > 0 ? (int)(start.seconds * 1000) : -1;
    int found = ended.fd < 0 ? -1 : poll(&ended, 1, timeout);
    int error = errno;
    close(ended.fd);
    kill(-id, SIGKILL); // and whatever it left running
    int status;
    TEMP_FAILURE_RETRY(waitpid(id, &status, 0));
    check_interrupted();
    if (found < 0)
        throw Error("cannot wait for " + start.arguments[0] + ": " + strerror(error));
    if (found == 0)
        return {false, -1, "was still running after " + std::to_string((int)start.seconds) + " s"};
    if (WIFSIGNALED(status))
        return {false, -1, std::string("was killed by a signal: ") + strsignal(WTERMSIG(status))};
    int code = WEXITSTATUS(status);
    return {code == 0, code, "exit status " + std::to_string(code)};
}

static void on_interrupt(int)
{
    interrupted = 1;
}

void catch_interrupts()
{
    struct sigaction action = {};
    action.sa_handler = on_interrupt; // and no SA_RESTART: poll() and waitpid() shall end
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        sigaction(signal, &action, nullptr);
}

void check_interrupted()
{
    if (interrupted)
        throw Error("interrupted");
}

} // namespace crash
