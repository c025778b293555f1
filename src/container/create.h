/* Making a container's file. Private to this folder. */
#ifndef PM_CONTAINER_CREATE_H
#define PM_CONTAINER_CREATE_H

#include "container/container.h"

/* Make an empty container at `path` and return it open and locked for writing, or -1: EEXIST if
 * there is a file already. A failure leaves nothing behind. */
int container_create(const char *path, const struct container_options *options);

/* Write one copy of a header; 0 or a negative errno. */
int header_write(int fd, const struct format_header *header, uint64_t offset);

#endif
