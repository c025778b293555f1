/*
 * What one repetition runs, and in which order. Programs whose figures are compared follow each
 * other directly, so that what the machine does meanwhile happens to all of them alike; who of them
 * goes first changes with each repetition.
 */
#pragma once

#include "driver/results.h"

#include <string>
#include <vector>

namespace bench
{

struct Plan {
    std::string programs;       // the directory of the measuring programs
    bool quick;                 // one size of structures, fewer repetitions
    std::string part = "libpm"; // what is measured: libpm itself, or a client

    /** Where programs may put files; each finds its directory empty. */
    struct Directories {
        std::string memory; // stands in for persistent memory
        std::string file;   // on an ordinary file system
    };

    struct Command {
        std::vector<std::string> words;
        bool memory = true;                   // its files stand in for persistent memory
        std::vector<std::string> log_of = {}; // the cell whose log bytes are to be appended
    };

    size_t repetitions() const
    {
        return part == "log" || part == "lsm" || part == "tiered" ? (quick ? 1 : 3) : quick ? 3 : 5;
    }

    std::vector<Command> commands(size_t repetition, const Directories &directories) const;
};

/**
 * The words to run. In a cell of the structures the floor, and the log by hand, write as many bytes at
 * each commit as redo/stores did there, which must have been measured before.
 */
std::vector<std::string> words_of(const Plan::Command &command, Results &results);

} // namespace bench
