/*
 * A file that appears at its path whole or not at all, and replaces none. It is made without a name
 * (O_TMPFILE), and linked to its path by a call that does not replace. So a crash leaves no litter.
 *
 * On file systems without O_TMPFILE the file has a temporary name beside the path, and is renamed. The
 * same is done in processes without /proc, which linking needs. There a crash may leave a file that
 * nobody opens.
 */
#ifndef PM_CONTAINER_NEW_FILE_H
#define PM_CONTAINER_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct new_file {
    int fd;
    char name[PATH_MAX]; /* the current name; "": none */
    bool published;      /* this is the path, where by now another file may be */
};

/* -1 with errno, but no message. */
int new_file_open(struct new_file *file, const char *path, mode_t mode);

/*
 * Name the finished file `path`, durably; its contents are durable already. The descriptor may be another
 * one afterwards, and it is locked for writing. -1 with a message: EEXIST if there is a file at the path.
 * new_file_discard() cleans up.
 */
int new_file_publish(struct new_file *file, const char *path);

/* Close the descriptor of a published file, and drop its lock. A child of fork(2) may still have the
 * descriptor, and would keep the lock. */
void new_file_close(struct new_file *file);

/* Close the descriptor of a file that has not been published, and remove it. errno stays. */
void new_file_discard(struct new_file *file);

/* Open the directory that `path` is in. -1 with a message. */
int directory_open(const char *path);

/* Make changes to the directory's entry `path` durable, and close `directory`. */
int directory_sync(const char *path, int directory);

#endif
