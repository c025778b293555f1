// Two judges of the containers after a crash: libpm itself, and the user's command.
#ifndef PM_CRASH_CHECK_HPP
#define PM_CRASH_CHECK_HPP

#include "pm/crash/program.hpp"

namespace crash
{

struct Verdict {
    bool good = true;
    std::string judge;   // who judged: "libpm" or "the check"
    std::string outcome; // how the judge failed the containers, in words
    std::string text;    // the judge's own message or output
};

struct Situation {
    std::string crash;                   // EVENT:FATE[:SEED]
    std::string commits;                 // how many commits had returned, a number for each container
    std::string printed;                 // path of a file with the program's output up to the crash
    std::vector<std::string> containers; // paths of the containers that exist
};

// libpm's own opinion. A second process finds it out, since a damaged container may kill the process.
// This process opens containers read-only. So the user's check finds the files as the crash left them,
// not as a recovery made them.
class Libpm
{
  public:
    Libpm();
    ~Libpm();
    Libpm(const Libpm &) = delete;

    // Whether libpm can open, recover and check each container without complaint.
    Verdict ask(const std::vector<std::string> &containers);

  private:
    void start();
    int stop();

    pid_t process_ = -1;
    int socket_ = -1;
};

// Run `command` by sh -c. The command's output goes to the file `output` and to the verdict. If `output`
// is "", it goes to the tool's own output. Throws Error if the shell cannot run the command.
Verdict ask_command(const std::string &command, const Situation &situation,
                    const std::string &output, double seconds);

} // namespace crash

#endif
