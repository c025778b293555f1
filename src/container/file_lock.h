/* Locks between processes. Private to this folder. */
#ifndef PM_CONTAINER_FILE_LOCK_H
#define PM_CONTAINER_FILE_LOCK_H

#include <stdbool.h>

/* Take the writer's or a reader's lock without waiting; EBUSY. Held until file_unlock(), or until
 * neither a descriptor nor a mapping is left. */
int file_lock(int fd, const char *path, bool readonly);

/* At close: a mapping that munmap(2) failed to remove would keep the lock, and so would the descriptor of a
 * child of fork(2). */
void file_unlock(int fd);

/* Whether `path` still names the file open at `fd`: it may have been deleted before the lock. */
bool file_is_at(int fd, const char *path);

#endif
