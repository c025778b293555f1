#include "pm/crash/check.hpp"

#include "libpm.h"
#include "pm/crash/tape.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

namespace crash
{

// In a child: libpm may crash. Read-only, so that the check finds what the crash left, not what a
// recovery made of it.
[[noreturn]] static void check_containers(const std::vector<std::string> &paths, int answer)
{
    for (const std::string &path : paths) {
        pm_options options = {};
        options.size = sizeof options;
        options.flags = PM_READONLY;
        pm_container *c = pm_open(path.c_str(), &options);
        if (!c || pm_check(c) != 0) {
            const char *why = pm_errormsg();
            _exit(write(answer, why, strlen(why)) < 0 ? 2 : 1);
        }
        pm_close(c);
    }
    _exit(0);
}

Verdict ask_libpm(const Situation &s, double seconds)
{
    int ends[2];
    if (pipe(ends) != 0)
        throw Error(std::string("cannot make a pipe: ") + strerror(errno));
    pid_t id = fork();
    if (id == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm((unsigned)seconds + 1);
        check_containers(s.containers, ends[1]);
    }
    close(ends[1]);
    Verdict v{true, "libpm", "", ""};
    char text[1024];
    for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0 || (n < 0 && errno == EINTR);)
        v.text.append(text, n > 0 ? (size_t)n : 0);
    close(ends[0]);
    int status = 0;
    while (id > 0 && waitpid(id, &status, 0) < 0 && errno == EINTR)
        ;
    if (id < 0)
        throw Error(std::string("cannot fork: ") + strerror(errno));
    v.good = status == 0;
    v.outcome = WIFSIGNALED(status)
                    ? std::string("was killed by a signal: ") + strsignal(WTERMSIG(status))
                    : "does not accept it; please report this as a bug of libpm";
    return v;
}

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
    if (end.status == 126 || end.status == 127) // so says the shell
        throw Error("cannot run the check " + command + ": " + v.text);
    return v;
}

} // namespace crash
