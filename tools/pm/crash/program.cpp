// Starts a program by vfork(2), and waits for it by poll(2) on its pidfd, with a timeout. The program leads
// a process group of its own. When it has ended, or its time is over, the whole group is killed.
#include "pm/crash/program.hpp"

#include "pm/crash/tape.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" { // glibc 2.36 has forgotten it in this header
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

// The tool's environment. The entries of `start` are added, and replace those of the same name.
static std::vector<std::string> environment_of(const Start &start)
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
    return environment;
}

static bool open_as(int target, const char *path, int flags)
{
    int fd = open(path, flags, 0666);
    if (fd < 0 || fd == target)
        return fd == target;
    bool done = dup2(fd, target) == target;
    close(fd);
    return done;
}

// Turns the child into the program. Returns only on failure, with errno set. The program gets its own
// process group: the tool can then kill the program's children, too. The program dies when the tool dies,
// even by kill -9.
static void become(const Start &start, char *const *arguments, char *const *environment,
                   pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); // the tool died before prctl(): no signal will come
    // A program in another process group is stopped when it reads from the terminal.
    if ((!start.input || isatty(STDIN_FILENO)) && !open_as(STDIN_FILENO, "/dev/null", O_RDONLY))
        return;
    if (!start.output.empty() &&
        !open_as(STDOUT_FILENO, start.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND))
        return;
    if (start.errors_too && !start.output.empty() && dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        return;
    execvpe(arguments[0], arguments, environment);
}

// Starts the program by vfork(), as posix_spawn() does. posix_spawn() itself cannot ask for a signal at
// the parent's death. Until it becomes the program, the child runs in our memory: copying the recording
// would take long.
static pid_t spawn(const Start &start)
{
    const std::vector<std::string> environment = environment_of(start);
    const std::vector<char *> words = pointers(start.arguments), variables = pointers(environment);
    const pid_t parent = getpid();
    volatile int error = 0;
    pid_t id = vfork();
    if (id == 0) {
        become(start, words.data(), variables.data(), parent);
        error = errno;
        _exit(1);
    }
    if (id < 0)
        throw Error(std::string("cannot fork: ") + strerror(errno));
    if (error != 0) {
        TEMP_FAILURE_RETRY(waitpid(id, nullptr, 0));
        throw Error("cannot run " + start.arguments[0] + ": " + strerror(error));
    }
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
    kill(-id, SIGKILL); // the processes that the program left running, too
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
    action.sa_handler = on_interrupt; // without SA_RESTART, so that a signal ends poll()
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        sigaction(signal, &action, nullptr);
}

void check_interrupted()
{
    if (interrupted)
        throw Error("interrupted");
}

} // namespace crash
