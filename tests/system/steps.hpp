// The system calls that create and grow a file, under the test's control: the linker's --wrap sends
// libpm's calls of them through here.
#ifndef TESTS_SYSTEM_STEPS_HPP
#define TESTS_SYSTEM_STEPS_HPP

#include <string>
#include <vector>

namespace steps
{

// What becomes of the n-th call, counted from arm() on.
enum class At {
    dies,  // the process ends before it
    tears, // the process ends when half of what it was to write is written, in whole words
    fails, // once, with `error`
};

// What the file system cannot do, always.
struct Lacks {
    bool nameless = false;  // O_TMPFILE
    bool fallocate = false; // fallocate(2)
    bool noreplace = false; // RENAME_NOREPLACE
    bool links = false;     // that two names of a file share locks and contents
    bool proc = false;      // /proc, which is the process's want and not the file system's
};

constexpr int EXIT_STATUS = 77; // of a process that dies at its step

void arm(int nth, At at, int error = 0);
void lack(Lacks lacks);
int count();                // calls since arm()
const char *name_of_last(); // of the call that failed
const std::vector<std::string> &calls(); // since arm(), in order

} // namespace steps

#endif
