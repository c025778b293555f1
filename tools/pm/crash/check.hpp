// Two judges of what a crash left: libpm itself, and the user's command.
#ifndef PM_CRASH_CHECK_HPP
#define PM_CRASH_CHECK_HPP

#include "pm/crash/program.hpp"

namespace crash
{

struct Verdict {
    bool good = true;
    std::string judge;   // who found fault: "libpm" or "the check"
    std::string outcome; // with what
    std::string text;    // what it said
};

struct Situation {
    std::string crash;                   // EVENT:FATE[:SEED]
    std::string commits;                 // that had returned, of each container
    std::string printed;                 // path of a file with what the program had printed
    std::vector<std::string> containers; // that are there
};

// libpm's own opinion, from a process beside ours that a damaged container may well kill. It opens
// read-only, so that the check finds what the crash left, not what a recovery made of it.
class Libpm
{
  public:
    Libpm();
    ~Libpm();
    Libpm(const Libpm &) = delete;

    // Whether libpm opens, recovers and approves each container.
    Verdict ask(const std::vector<std::string> &containers);

  private:
    void start();
    int stop();

    pid_t process_ = -1;
    int socket_ = -1;
};

// What `command` says, run by sh -c. Its output goes to `output` and to the verdict; or to ours if
// that is "". Error if the shell cannot run it.
Verdict ask_command(const std::string &command, const Situation &situation,
                    const std::string &output, double seconds);

} // namespace crash

#endif
