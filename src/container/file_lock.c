/*
 * Who may open a container: one writer and nobody else, or any number of readers. The locks belong to the
 * open file description (OFD). So two opens in one process conflict as well, and closing another
 * descriptor does not drop the lock.
 *
 *   byte 0   the writer's, exclusive
 *   byte 1   exclusive for the writer, shared for readers: a reader sees home, which a writer
 *            changes at every moment
 */
#define _GNU_SOURCE
#include "container/file_lock.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int lock_bytes(int fd, short type, off_t first, off_t count)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    return (int)TEMP_FAILURE_RETRY(fcntl(fd, F_OFD_SETLK, &lock)); /* EINTR: on NFS */
}

int file_lock(int fd, const char *path, bool readonly)
{
    const char *holder = "for writing";
    int result = readonly ? 0 : lock_bytes(fd, F_WRLCK, 0, 1);
    if (result == 0) {
        result = lock_bytes(fd, readonly ? F_RDLCK : F_WRLCK, 1, 1);
        holder = readonly ? "for writing" : "read-only";
    }
    if (result == 0)
        return 0;
    if (errno == EAGAIN || errno == EACCES)
        return pm__fail(EBUSY, "%s: open %s, in this process or another; close it there first",
                        path, holder);
    return pm__fail_system(errno, "%s: cannot lock", path);
}

void file_unlock(int fd)
{
    (void)lock_bytes(fd, F_UNLCK, 0, 2);
}

bool file_is_at(int fd, const char *path)
{
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}
