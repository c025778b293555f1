// Programs that the tool starts: the one to be recorded, and the checks.
#ifndef PM_CRASH_PROGRAM_HPP
#define PM_CRASH_PROGRAM_HPP

#include <string>
#include <vector>

namespace crash
{

struct Start {
    std::vector<std::string> arguments;   // the program first, found by PATH
    std::vector<std::string> environment; // NAME=VALUE, besides ours
    std::string output;                   // where what it prints goes; "": where ours does
    bool errors_too = false;              // to the same file
    bool input = false;                   // it reads ours, unless that is a terminal; else none
    double seconds = 0;                   // after which it and its children are killed; 0: never
};

struct End {
    bool good = false;   // exit status 0
    int status = -1;     // of its exit, if it did
    std::string outcome; // in words
};

// Error if it cannot be started, or we have been interrupted. Not for threads: the program would be
// killed when the one that calls this ends.
End run(const Start &start);

// From now on SIGINT, SIGTERM and SIGHUP do not end us, but run() and check_interrupted() throw.
void catch_interrupts();
void check_interrupted();

} // namespace crash

#endif
