/*
 * Two checks come before objects move. PM_VOUCHED skips both.
 *
 *   1  roots_stack() walks the frames. pmcc must have compiled each function, up to main() or to the
 *      thread's start.
 *   2  There must be no second thread. The C library may know this. Otherwise the threads in
 *      /proc/self/task are counted. A thread that has been joined may still be listed, so the check waits
 *      for the kernel, a second at most.
 */
#define _GNU_SOURCE
#include "discovery/check.h"

#include "base/cancel.h"
#include "base/error.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TASKS      "/proc/self/task"
#define PF_EXITING 0x4 /* from the kernel's linux/sched.h; proc(5) shows this bit */

/* Read a thread's flags from its `stat` file. 0, or an errno value: ENOENT or ESRCH if the thread has
 * gone. */
static int read_flags(const char *path, unsigned *flags)
{
    char text[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t length = read(fd, text, sizeof text - 1);
    int error = length < 0 ? errno : 0;
    close(fd);
    if (error != 0)
        return error;
    text[length] = '\0';
    const char *after_name = strrchr(text, ')'); /* the name may hold anything, even ')' */
    return after_name && sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %u", flags) == 1 ? 0
                                                                                        : EINVAL;
}

/* True if a second thread runs. It counts and compares no ids, because /proc may show the ids of another
 * pid namespace. */
static bool another_runs(void)
{
    DIR *tasks = opendir(TASKS);
    if (!tasks)
        return true;
    uint32_t running = 0;
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        if (task->d_name[0] == '.')
            continue;
        char path[sizeof TASKS + sizeof task->d_name + sizeof "//stat"];
        snprintf(path, sizeof path, TASKS "/%s/stat", task->d_name);
        unsigned flags = 0;
        int error = read_flags(path, &flags);
        running += error != 0 ? error != ENOENT && error != ESRCH : !(flags & PF_EXITING);
    }
    closedir(tasks);
    return running > 1;
}

static bool first_thread_has_ended(void)
{
    unsigned flags;
    return read_flags("/proc/self/stat", &flags) == 0 && flags & PF_EXITING;
}

static uint64_t count_threads(void)
{
    struct stat tasks;
    return stat(TASKS, &tasks) == 0 ? tasks.st_nlink - 2 : 0; /* without . and .. */
}

/* True if the process has no other thread. pthread_join() returns some time before the kernel forgets the
 * thread, and such a thread must not count. So wait until the kernel has forgotten it, at most a second,
 * because with a debugger it may take long. The kernel forgets the process's first thread only when the
 * process ends. So if the first thread has ended and there are two, these two are it and the caller. */
static bool is_alone(void)
{
    enum { WAITS = 5000 };
    UNCANCELLED;
    if (__libc_single_threaded)
        return true;
    for (uint32_t i = 0; i < WAITS; i++) {
        if (count_threads() == 1 || (first_thread_has_ended() && count_threads() == 2))
            return true;
        if (another_runs())
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return false;
}

/* Fail because a foreign function waits for a call of libpm. `address` is in this function. The message
 * has its name if it is exported. */
static int refuse(const struct discovery *d, const void *address)
{
    Dl_info in = {.dli_fname = NULL};
    if (dladdr((const char *)address - 1, &in) == 0 || !in.dli_fname)
        in = (Dl_info){.dli_fname = "unknown code"};
    return pm__fail(EINVAL,
                    "%s: malloc'ed objects would move, but a function of %s (%s%sat %p), which "
                    "`pmcc --discover` has not compiled, is waiting for this call, and may hold "
                    "pointers to them; commit elsewhere, compile that by `pmcc --discover`, or "
                    "vouch with PM_VOUCHED that it holds none",
                    d->a->c->path, in.dli_fname, in.dli_sname ? in.dli_sname : "",
                    in.dli_sname ? ", " : "", address);
}

int check_threads(const struct discovery *d)
{
    if (d->vouched || is_alone())
        return 0;
    return pm__fail(EINVAL,
                    "%s: malloc'ed objects would move, and other threads "
                    "may hold pointers to them; commit while there are none, or vouch with "
                    "PM_VOUCHED that they do not",
                    d->a->c->path);
}

int check_alone(const struct discovery *d, struct frame program, struct roots_range *stack)
{
    const void *foreign;
    bool is_known = roots_stack(program, stack, &foreign);
    if (!d->vouched && !is_known)
        return refuse(d, foreign);
    return check_threads(d);
}
