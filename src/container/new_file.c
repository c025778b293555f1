/*
 * A new file goes through these steps:
 *
 *   1  new_file_open() makes it by O_TMPFILE, or with a temporary name.
 *   2  The caller fills it, and makes the contents durable.
 *   3  new_file_publish() locks it, and links it to its path, or renames it. RENAME_NOREPLACE replaces no
 *      file. Where the file system lacks this flag, a second link does the same.
 *   4  directory_sync() makes the name durable.
 */
#define _GNU_SOURCE
#include "container/new_file.h"

#include "backend/backend.h"
#include "base/error.h"
#include "container/descriptor.h"
#include "container/file_lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SELF_TEXT 64

/* A path to an open file, which may have no other path. Without /proc the path leads nowhere. */
static const char *name_of(int fd, char text[SELF_TEXT])
{
    snprintf(text, SELF_TEXT, "/proc/self/fd/%d", fd);
    return text;
}

int directory_open(const char *path)
{
    char copy[PATH_MAX];
    assert(strlen(path) < sizeof copy); /* else the kernel would not have opened the file */
    strcpy(copy, path);
    const char *directory = dirname(copy);
    int fd = TEMP_FAILURE_RETRY(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return pm__fail_system(errno, "%s: cannot open the directory %s", path, directory);
    return fd;
}

int directory_sync(const char *path, int fd)
{
    int error = file_sync(fd);
    close(fd);
    if (error != 0 && error != -EINVAL) /* some file systems have nothing to sync */
        return pm__fail_system(-error, "%s: cannot sync its directory", path);
    return 0;
}

/*
 * Open the file again by its second name, and go on with this descriptor. On many file systems in user
 * space the kernel takes the second name for another file, with its own locks, pages and length. A process
 * that opens the file by its name would not meet our lock, and would see other contents. If a process has
 * done so already: -EEXIST.
 */
static int open_by_name(int *fd, const char *path)
{
    int named = descriptor_of_its_own(TEMP_FAILURE_RETRY(open(path, O_RDWR | O_CLOEXEC)));
    if (named < 0) /* its mode lets nobody open it for writing, so nobody will */
        return errno == EACCES ? 0 : -errno;
    file_unlock(*fd);
    close(*fd);
    *fd = named;
    if (file_lock(named, path, false) != 0)
        return errno == EBUSY ? -EEXIST : -errno;
    return file_is_at(named, path) ? 0 : -EEXIST;
}

/* Give the file a second name, where a rename may replace a file. This is the case on NFS, on ZFS before
 * 2.2, and on many file systems in user space. */
static int rename_new(int *fd, const char *temporary, const char *path)
{
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if ((errno != EINVAL && errno != ENOSYS) || linkat(AT_FDCWD, temporary, AT_FDCWD, path, 0) != 0)
        return -errno;
    int error = open_by_name(fd, path);
    if (error == 0)
        unlink(temporary);
    else if (error != -EEXIST)
        unlink(path);
    return error;
}

/* Name the finished file. -EEXIST if the path is there already. */
static int publish(struct new_file *file, const char *path)
{
    if (file->name[0])
        return rename_new(&file->fd, file->name, path);
    char self[SELF_TEXT];
    return linkat(AT_FDCWD, name_of(file->fd, self), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0
               ? 0
               : -errno;
}

/* Make a new file beside `path`: nameless, with `temporary` set to "", or named `temporary`. */
static int open_new(const char *path, mode_t mode, char temporary[PATH_MAX])
{
    temporary[0] = 0;
    char directory[PATH_MAX];
    if (strlen(path) + sizeof ".new-0123456789abcdef" > sizeof directory) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(directory, path);
    int fd = TEMP_FAILURE_RETRY(open(dirname(directory), O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
    if (fd >= 0) {
        char self[SELF_TEXT];
        struct stat st;
        if (stat(name_of(fd, self), &st) == 0)
            return fd;
        close(fd);
    } else if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT) {
        return fd;
    }
    uint64_t random;
    if (TEMP_FAILURE_RETRY(getrandom(&random, sizeof random, 0)) != sizeof random)
        return -1;
    snprintf(temporary, PATH_MAX, "%s.new-%016" PRIx64, path, random);
    return TEMP_FAILURE_RETRY(open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode));
}

int new_file_open(struct new_file *file, const char *path, mode_t mode)
{
    file->published = false;
    file->fd = descriptor_of_its_own(open_new(path, mode, file->name));
    return file->fd < 0 ? -1 : 0;
}

/* The lock comes before the name: so nobody has opened the file if its name cannot be made durable. */
int new_file_publish(struct new_file *file, const char *path)
{
    if (file_lock(file->fd, path, false) != 0)
        return -1;
    int directory = directory_open(path);
    if (directory < 0)
        return -1;
    int error = publish(file, path);
    if (error != 0) {
        close(directory);
        return pm__fail_system(-error, "%s: cannot create", path);
    }
    strcpy(file->name, path);
    file->published = true;
    return directory_sync(path, directory);
}

void new_file_close(struct new_file *file)
{
    file_unlock(file->fd);
    close(file->fd);
}

void new_file_discard(struct new_file *file)
{
    int error = errno;
    if (file->name[0] && (!file->published || file_is_at(file->fd, file->name)))
        unlink(file->name);
    new_file_close(file);
    errno = error;
}
