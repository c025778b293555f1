/* For an example's source that includes this first: its container may be opened anywhere, and its main
 * function is one among others. */
#ifndef TEST_PROGRAMS_MOVABLE_H
#define TEST_PROGRAMS_MOVABLE_H

#include <libpm.h>

static pm_container *open_movable(const char *path, const struct pm_options *options)
{
    struct pm_options movable = *options;
    movable.flags |= PM_MOVABLE;
    movable.engine = PM_ENGINE_REDO;
    movable.tracker = PM_TRACKER_STORES;
    return pm_open(path, &movable);
}

#define pm_open open_movable

#endif
