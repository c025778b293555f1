#define _GNU_SOURCE
#include "discovery/check.h"

#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <unistd.h>

#define TASKS      "/proc/self/task"
#define PF_EXITING 0x4 /* of the kernel's linux/sched.h, as proc(5) shows it */

/* Whether a thread will run no code of the program any more. Where the kernel does not tell: no. */
static bool is_exiting(long thread)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, TASKS "/%ld/stat", thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length < 0)
        return errno == ESRCH;
    const char *after_name = strrchr(text, ')'); /* which may hold anything */
    unsigned flags;
    return after_name && sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
           flags & PF_EXITING;
}

static bool another_runs(void)
{
    DIR *tasks = opendir(TASKS);
    if (!tasks)
        return true;
    bool found = false;
    for (const struct dirent *task; !found && (task = readdir(tasks));) {
        long thread = strtol(task->d_name, NULL, 10);
        found = thread != 0 && thread != gettid() && !is_exiting(thread);
    }
    closedir(tasks);
    return found;
}

/* pthread_join() returns some time before the kernel forgets the thread, which is not to be taken for
 * another one: it is waited for. The process's first one is not forgotten before the process ends. */
static bool is_alone(void)
{
    if (__libc_single_threaded)
        return true;
    for (;;) {
        struct stat tasks;
        nlink_t expected = gettid() != getpid() && is_exiting(getpid()) ? 2 : 1;
        if (stat(TASKS, &tasks) != 0)
            return false;
        if (tasks.st_nlink - 2 == expected) /* . and .. */
            return true;
        if (another_runs())
            return false;
        sched_yield();
    }
}

int check_alone(const struct discovery *d, const struct frame *program, struct roots_range *stack)
{
    const void *foreign;
    bool is_known = roots_stack(program, stack, &foreign);
    if (d->vouched)
        return 0;
    if (!is_known)
        return pm__fail(EINVAL,
                        "%s: malloc'ed objects would move, but a function which "
                        "`pmcc --discover` has not compiled is waiting for this commit, at %p, and "
                        "may hold pointers to them; commit elsewhere, or vouch with PM_VOUCHED "
                        "that it does not",
                        d->map->a->c->path, foreign);
    if (!is_alone())
        return pm__fail(EINVAL,
                        "%s: malloc'ed objects would move, and other threads "
                        "may hold pointers to them; commit while there are none, or vouch with "
                        "PM_VOUCHED that they do not",
                        d->map->a->c->path);
    return 0;
}
