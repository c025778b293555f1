// Runs the user's program with the recorder inside.
#ifndef PM_CRASH_RECORD_HPP
#define PM_CRASH_RECORD_HPP

#include <string>
#include <vector>

namespace crash
{

// Into a directory, from which Tape reads. `medium`: pmem, file, or "" for what each container is
// on. Error if the program cannot be run, or fails.
void record(const std::vector<std::string> &program, const std::string &directory,
            const std::string &medium);

} // namespace crash

#endif
