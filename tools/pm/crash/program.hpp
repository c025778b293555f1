// Runs other programs: the program to be recorded, and the checks.
#ifndef PM_CRASH_PROGRAM_HPP
#define PM_CRASH_PROGRAM_HPP

#include <string>
#include <vector>

namespace crash
{

struct Start {
    std::vector<std::string> arguments;   // the program first, found by PATH
    std::vector<std::string> environment; // NAME=VALUE, added to the tool's environment
    std::string output;                   // file for its standard output; "": the tool's
    bool errors_too = false;              // its stderr goes to that file, too
    bool input = false;                   // it reads the tool's stdin, unless a terminal; else none
    double seconds = 0;                   // after this time it and its children are killed; 0: never
};

struct End {
    bool good = false;   // exit status 0
    int status = -1;     // exit status; -1 if the program did not exit by itself
    std::string outcome; // how it ended, in words
};

// Run a program and wait for its end. Throws Error if the program cannot be started, or if the tool was
// interrupted. Call it from the main thread only: when the calling thread ends, the program is killed.
End run(const Start &start);

// From now on SIGINT, SIGTERM and SIGHUP do not end the tool. Instead run() and check_interrupted() throw.
void catch_interrupts();
void check_interrupted();

} // namespace crash

#endif
