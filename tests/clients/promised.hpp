// What a program under `pm crash` had said of its steps, for its check.
#ifndef TESTS_CLIENTS_PROMISED_HPP
#define TESTS_CLIENTS_PROMISED_HPP

#include <cstdlib>
#include <fstream>
#include <string>

// The number of the last line "made NUMBER"; -1: none, nothing is promised.
inline long promised()
{
    std::ifstream output(getenv("LIBPM_CRASH_OUTPUT") ?: "");
    std::string word;
    long made = -1;
    while (output >> word >> made)
        ;
    return made;
}

#endif
