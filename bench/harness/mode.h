/*
 * The mode of libpm that a program measures: BENCH_ENGINE, BENCH_TRACKER, BENCH_FLAGS and their
 * name BENCH_MODE, from CMakeLists.txt. How a program is compiled depends on the tracker, so each
 * mode is a program of its own.
 */
#ifndef BENCH_MODE_H
#define BENCH_MODE_H

#include <libpm.h>

#include <string.h>

/** Options for a new container; all that is not the mode is the default. */
static inline struct pm_options mode_options(void)
{
    struct pm_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = PM_CREATE | BENCH_FLAGS;
    options.engine = BENCH_ENGINE;
    options.tracker = BENCH_TRACKER;
    return options;
}

#endif
