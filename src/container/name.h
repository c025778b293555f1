/*
 * Whether a container is still the file at its path. Somebody may delete, rename or replace the file
 * while it is open. Commits go on then, and the next pm_open() of the path does not find them.
 *
 *     chdir(2)                        means nothing: the path is resolved once, at pm_open()
 *     a symbolic link that changes    means nothing: the file is where it was
 *     a directory above is renamed    the name is lost: the path leads there no more
 *     no name at pm_open()            (memfd, O_TMPFILE, unlinked) nothing to look at, ever
 *     chroot(2), missing permission   nobody can tell, so nothing is said
 *
 * The check costs a commit 10 instructions, which read and compare the processor's clock. Once a second
 * it costs two calls of stat(2).
 */
#ifndef PM_CONTAINER_NAME_H
#define PM_CONTAINER_NAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct container;

struct name {
    char *path; /* resolved; NULL: the file had none. Owned */
    dev_t root_device;
    ino_t root_inode;         /* what "/" was */
    bool is_error;            /* a lost name is an error, not a warning */
    _Atomic bool due;         /* look at the next commit, whatever the clock says */
    _Atomic bool told;        /* there has been a warning */
    _Atomic uint64_t ticks;   /* of the processor's clock, when the time was last read */
    _Atomic uint64_t seconds; /* when the path was last checked */
};

/* About 0.2 s. The processors' clocks differ, so they only decide when to read the time. */
#define NAME_TICKS (UINT64_C(1) << 29)

/* Resolve the path of an open container. -1 with ENOMEM; or as name_check(). */
int name_resolve(struct container *c, bool is_error);

/* Whether name_check() is due at a commit. */
static inline bool name_is_due(const struct name *name)
{
    return __builtin_ia32_rdtsc() -
                   atomic_load_explicit(&name->ticks, memory_order_relaxed) >
               NAME_TICKS ||
           atomic_load_explicit(&name->due, memory_order_relaxed);
}

/* At a commit: check the path, but once a second at most. If the name is lost, warn once. If a lost name
 * is an error, return -1 with ESTALE and a message. Any thread. */
int name_check(struct container *c);

/* The same, whatever the time is. */
int name_check_now(struct container *c);

#endif
