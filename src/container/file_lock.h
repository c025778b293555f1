/* Locks between processes. Private to this folder. */
#ifndef PM_CONTAINER_FILE_LOCK_H
#define PM_CONTAINER_FILE_LOCK_H

#include <stdbool.h>

/* Take the writer's or a reader's lock without waiting; EBUSY. Held until `fd` is closed. */
int file_lock(int fd, const char *path, bool readonly);

/* Whether `path` still names the file open at `fd`: it may have been deleted before the lock. */
bool file_is_at(int fd, const char *path);

#endif
