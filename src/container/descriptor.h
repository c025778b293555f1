/* Descriptors of containers. Private to this folder. */
#ifndef PM_CONTAINER_DESCRIPTOR_H
#define PM_CONTAINER_DESCRIPTOR_H

/*
 * Exchange a descriptor from open(2) if it is 0, 1 or 2. A program may have closed standard input, output
 * or error, and the container would get this descriptor. Then output of the program would overwrite the
 * container's header. -1 as open(2).
 */
int descriptor_of_its_own(int fd);

#endif
