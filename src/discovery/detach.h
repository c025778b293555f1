/* The reverse of a commit that discovers: objects of a container move back to the heap. */
#ifndef PM_DISCOVERY_DETACH_H
#define PM_DISCOVERY_DETACH_H

#include "discovery/discovery.h"

/* See pm_detach(). */
void *discovery_detach(struct discovery *d, struct frame program, void *object);

#endif
