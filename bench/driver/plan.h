/*
 * What one repetition runs, and in which order. Programs whose figures are compared follow each
 * other directly, so that what the machine does meanwhile happens to all of them alike; who of them
 * goes first changes with each repetition.
 */
#pragma once

#include <string>
#include <vector>

namespace bench
{

struct Plan {
    std::string programs; // the directory of the measuring programs
    bool quick;           // smallest size only

    size_t repetitions() const { return quick ? 3 : 5; }

    /** The commands of one repetition, with an empty `directory` for the files of each. */
    std::vector<std::vector<std::string>> commands(size_t repetition,
                                                   const std::string &directory) const;
};

} // namespace bench
