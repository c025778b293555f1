/* Descriptors of containers. Private to this folder. */
#ifndef PM_CONTAINER_DESCRIPTOR_H
#define PM_CONTAINER_DESCRIPTOR_H

/*
 * What open(2) has returned, but never that of standard input, output or error: in a program that
 * has closed these a container would get theirs, and what anybody prints would be written over its
 * header. -1 as open(2).
 */
int descriptor_of_its_own(int fd);

#endif
