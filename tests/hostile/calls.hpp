// Every public function of libpm, called on a container that may be hostile.
#ifndef TESTS_HOSTILE_CALLS_HPP
#define TESTS_HOSTILE_CALLS_HPP

#include <libpm.h>

namespace hostile
{

// How the container was opened.
struct Opened {
    const char *path;
    bool writable, discovers;
};

// Use it in all ways, then close it. What the calls say does not matter, for the container may be
// damaged. What they tell of objects must lie in the file: aborts, with a message, if it does not.
//
// tests/hostile/calls.sh compares the functions called in calls.cpp with those of libpm.h.
void call_all(pm_container *c, const Opened &how);

} // namespace hostile

#endif
