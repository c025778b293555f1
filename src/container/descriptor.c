/*
 * A descriptor that is none of the three standard ones. A program that has closed them would otherwise
 * print its messages into the container.
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
