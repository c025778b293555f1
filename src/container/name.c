/*
 * Compares the file that is open with the file at the path, by device and inode. If they differ, it asks
 * whether "/" is still the same directory, since a chroot explains any difference. If a call fails for an
 * unknown reason, the name counts as kept. The messages say how the name was lost, and how to save the data.
 */
#define _GNU_SOURCE
#include "container/container.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static uint64_t seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* never a system call, whichever clock the kernel uses */
    return (uint64_t)t.tv_sec;
}

/* Says how the name was lost. NULL: it was not lost, or libpm cannot tell. */
static const char *loss_of(const struct container *c)
{
    const struct name *name = &c->name;
    struct stat own, named, root;
    if (fstat(c->fd, &own) != 0)
        return errno == EBADF
                   ? "has lost its lock, for the program has closed libpm's descriptor: another "
                     "process may open it meanwhile; close descriptors before pm_open()"
                   : NULL;
    bool is_there = stat(name->path, &named) == 0;
    if (is_there && named.st_dev == own.st_dev && named.st_ino == own.st_ino)
        return NULL;
    if (!is_there && errno != ENOENT && errno != ENOTDIR)
        return NULL;
    if (stat("/", &root) != 0 || root.st_dev != name->root_device ||
        root.st_ino != name->root_inode)
        return NULL;
    if (is_there)
        return "has been replaced while open: commits go to the old file, and the next pm_open() of "
               "this path finds the new one; save the old one with pm_copy()";
    return own.st_nlink == 0
               ? "has been deleted while open: commits go to a file that ends with the program; "
                 "save it with pm_copy()"
               : "has been renamed while open, or a directory above it: commits go to a file that "
                 "the next pm_open() of this path does not find; rename it back, or save it with "
                 "pm_copy()";
}

int name_check_now(struct container *c)
{
    struct name *name = &c->name;
    int error = errno;
    const char *loss = name->path ? loss_of(c) : NULL;
    errno = error;
    atomic_store_explicit(&name->seconds, seconds_now(), memory_order_relaxed);
    atomic_store_explicit(&name->ticks, __builtin_ia32_rdtsc(), memory_order_relaxed);
    /* If a lost name is an error, each commit looks: the file may have been put back. */
    atomic_store_explicit(&name->due, loss && name->is_error, memory_order_relaxed);
    if (!loss)
        return 0;
    if (name->is_error)
        return pm__fail(ESTALE, "%s: %s", name->path, loss);
    if (!atomic_exchange(&name->told, true)) {
        pm__fail(ESTALE, "%s: %s", name->path, loss);
        pm__warn();
        errno = error;
    }
    return 0;
}

int name_check(struct container *c)
{
    struct name *name = &c->name;
    bool due = atomic_load_explicit(&name->due, memory_order_relaxed);
    if (due || seconds_now() > atomic_load_explicit(&name->seconds, memory_order_relaxed))
        return name_check_now(c);
    atomic_store_explicit(&name->ticks, __builtin_ia32_rdtsc(), memory_order_relaxed);
    return 0;
}

int name_resolve(struct container *c, bool is_error)
{
    struct stat root;
    c->name.is_error = is_error;
    c->name.path = realpath(c->path, NULL);
    if (!c->name.path && errno == ENOMEM)
        return pm__fail_system(ENOMEM, "%s: no memory to resolve its path", c->path);
    if (stat("/", &root) == 0) {
        c->name.root_device = root.st_dev;
        c->name.root_inode = root.st_ino;
    }
    return name_check_now(c);
}
