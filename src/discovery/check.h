/* Whether discovery may redirect the pointers that lead to objects. */
#ifndef PM_DISCOVERY_CHECK_H
#define PM_DISCOVERY_CHECK_H

#include "discovery/discovery.h"

/* Check that the program keeps pointers only where discovery looks for them. The program made its call in
 * the frame `program`. No function without pmcc's marks may wait for this call, and there may be no other
 * threads; or the program vouches. `*stack` gets this thread's stack. 0, or -1 with a message. */
int check_alone(const struct discovery *d, struct frame program, struct roots_range *stack);

/* The same for other threads only. */
int check_threads(const struct discovery *d);

#endif
