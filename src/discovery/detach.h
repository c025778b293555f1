/* The reverse of a commit that discovers: objects of a container become the heap's again. */
#ifndef PM_DISCOVERY_DETACH_H
#define PM_DISCOVERY_DETACH_H

#include "discovery/discovery.h"

/* See pm_detach(). */
void *discovery_detach(struct discovery *d, struct frame program, void *object);

#endif
