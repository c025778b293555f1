/* Which file this is, and whether a writer had it open when it was copied. Private to this folder. */
#ifndef PM_CONTAINER_IDENTITY_H
#define PM_CONTAINER_IDENTITY_H

#include "container/container.h"

/*
 * Sets `c->mark_open` and `c->mark_failed`. Refuses a container that is marked open as another file: -1
 * with ENOTUNIQ, unless `accept_copy`. -1 too when the system says nothing about the file.
 */
int identity_check(struct container *c, bool accept_copy);

#endif
