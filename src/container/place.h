/* Where in the arena a container lies. Private to this folder. */
#ifndef PM_CONTAINER_PLACE_H
#define PM_CONTAINER_PLACE_H

#include "container/container.h"

/* Read from the state page which addresses home's pointers mean. -1 with a message. */
int place_read(struct container *c);

/* Take slots of the arena and set `base`. If the slots that the pointers mean are free, take them. If not,
 * and the container is movable, take others. Set `relocates` and `translated`. -1 with EADDRINUSE. */
int place_take(struct container *c, const struct container_options *options);

/* Fail with ENOMEM, because the arena has no free slots for `size` bytes. Returns -1. */
int place_none(const char *path, uint64_t size);

#endif
