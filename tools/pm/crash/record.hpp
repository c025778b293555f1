// Runs the user's program with the recorder inside.
#ifndef PM_CRASH_RECORD_HPP
#define PM_CRASH_RECORD_HPP

#include <string>
#include <vector>

namespace crash
{

// Record a run of `program` into `directory`, where Tape reads the recording. `medium` is pmem or file,
// or "" for the medium that each container is on. Throws Error if the program cannot be run, or fails.
void record(const std::vector<std::string> &program, const std::string &directory,
            const std::string &medium);

} // namespace crash

#endif
