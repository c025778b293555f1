/*
 * Duplicates the descriptor to the lowest free number above 2, and closes the old one. Other descriptors
 * cost no system call.
 */
#include "container/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int descriptor_of_its_own(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(fd);
    errno = error;
    return other;
}
