/* Whether discovery may redirect what leads to objects. */
#ifndef PM_DISCOVERY_CHECK_H
#define PM_DISCOVERY_CHECK_H

#include "discovery/discovery.h"

/* Whether the pointers of the program are only where they will be looked for: no function that pmcc
 * has not compiled waits for the call that the program made in this frame, and there are no other
 * threads; or it vouches. `*stack`: this thread's. -1 with a message. */
int check_alone(const struct discovery *d, struct frame program, struct roots_range *stack);

#endif
