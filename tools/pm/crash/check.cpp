// libpm's opinion comes from a child process. It gets the path of a container as a message through a socket,
// and answers with a message. If the child dies, or does not answer within a minute, this is the verdict,
// and a new child is started.
//
// The user's check runs by program.cpp, with what it must know in its environment.
#include "pm/crash/check.hpp"

#include "libpm.h"
#include "pm/crash/tape.hpp"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace crash
{

// ---- libpm --------------------------------------------------------------------------------------

namespace
{

constexpr char GOOD = 'y', BAD = 'n'; // the first byte of an answer; after BAD comes the reason
constexpr int HANG_MS = 60000;        // many times as long as any recovery takes

std::string opinion(const char *path)
{
    pm_options options = {};
    options.size = sizeof options;
    // The image shows the container at one moment, as a crash leaves it. But the program had another
    // file open, so libpm takes the image for a copy.
    options.flags = PM_READONLY | PM_ACCEPT_COPY;
    // The container may have pointers to functions and constants of the program, which is not loaded
    // here. Whether other pointers may lead out is the program's choice.
    options.module_pointers = PM_MODULES_MISSING_OK;
    options.foreign_pointers = PM_FOREIGN_IGNORE;
    pm_container *c = pm_open(path, &options);
    std::string answer(1, GOOD);
    if (!c || pm_check(c) != 0)
        answer = BAD + std::string(pm_errormsg());
    pm_close(c);
    return answer;
}

// Answers messages until the other end is closed. Each message is the path of a container.
[[noreturn]] void serve(int socket)
{
    char path[PATH_MAX + 1];
    for (;;) {
        ssize_t size = TEMP_FAILURE_RETRY(recv(socket, path, PATH_MAX, 0));
        if (size <= 0)
            _exit(0);
        path[size] = '\0';
        std::string answer = opinion(path);
        if (send(socket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0)
            _exit(0);
    }
}

} // namespace

Libpm::Libpm()
{
    start();
}

Libpm::~Libpm()
{
    stop();
}

void Libpm::start()
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw Error(std::string("cannot make a pair of sockets: ") + strerror(errno));
    process_ = fork();
    if (process_ == 0) {
        close(ends[0]);
        serve(ends[1]);
    }
    close(ends[1]);
    socket_ = ends[0];
    if (process_ < 0)
        throw Error(std::string("cannot fork: ") + strerror(errno));
}

int Libpm::stop()
{
    int status = 0;
    close(socket_);
    kill(process_, SIGKILL);
    TEMP_FAILURE_RETRY(waitpid(process_, &status, 0));
    return status;
}

Verdict Libpm::ask(const std::vector<std::string> &containers)
{
    char answer[4096];
    for (const std::string &path : containers) {
        ssize_t size = send(socket_, path.data(), path.size(), MSG_NOSIGNAL);
        pollfd answered = {socket_, POLLIN, 0};
        bool late = size > 0 && TEMP_FAILURE_RETRY(poll(&answered, 1, HANG_MS)) == 0;
        size = late ? 0 : TEMP_FAILURE_RETRY(recv(socket_, answer, sizeof answer, 0));
        if (size > 0 && answer[0] == GOOD)
            continue;
        Verdict v{false, "libpm",
                  "does not accept it: a bug of libpm, if nothing else writes to the file", ""};
        if (size > 0) {
            v.text.assign(answer + 1, (size_t)size - 1);
        } else {
            int status = stop();
            v.outcome = late ? "hangs on " + path
                             : "is killed by " + path + ": " + strsignal(WTERMSIG(status));
            start();
        }
        return v;
    }
    return {true, "libpm", "", ""};
}

// ---- the user's command -------------------------------------------------------------------------

Verdict ask_command(const std::string &command, const Situation &s, const std::string &output,
                    double seconds)
{
    Start start;
    start.arguments = {"/bin/sh", "-c", command};
    start.environment = {"LIBPM_CRASH_EVENT=" + s.crash, "LIBPM_CRASH_COMMITS=" + s.commits,
                         "LIBPM_CRASH_OUTPUT=" + s.printed};
    start.output = output;
    start.errors_too = true;
    start.seconds = seconds;
    End end = run(start);
    Verdict v{end.good, "the check", end.outcome, ""};
    if (!v.good && !output.empty()) {
        std::ifstream in(output);
        v.text.assign(std::istreambuf_iterator<char>(in), {});
    }
    if (end.status == 126 || end.status == 127) // the shell could not run the command
        throw Error("cannot run the check " + command + ", or something in it: " + end.outcome +
                    (v.text.empty() ? "" : "\n") +
                    v.text.substr(0, v.text.find_last_not_of('\n') + 1));
    return v;
}

} // namespace crash
