/*
 * Whether a container is still the file at its path. One that was deleted, renamed or replaced while
 * it is open takes commits as before, and the next pm_open() of the path does not find them.
 *
 * The path is resolved once, at pm_open(): so chdir(2) later means nothing, nor does a symbolic link
 * that leads elsewhere by then, for the file is where it was. A directory above that is renamed does,
 * for the path leads there no more. A file without a name then (memfd, O_TMPFILE, unlinked) never has
 * one. In a process that has called chroot(2) since then paths mean other things, and so nothing can
 * be said; nor where permission is missing.
 *
 * It costs a commit the processor's clock and a comparison, 8 instructions, and once a second two
 * calls of stat(2).
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
    bool is_error;            /* to have lost it is one, and no warning */
    _Atomic bool due;         /* look at the next commit, whatever the clock says */
    _Atomic bool told;        /* there has been a warning */
    _Atomic uint64_t ticks;   /* of the processor's clock, when the time was last looked at */
    _Atomic uint64_t seconds; /* when the file was */
};

/* About 0.2 s: the processors' clocks differ, and so it is only when to look at the time. */
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

/* At a commit: look, but once a second at most. -1 with ESTALE and a message if that is an error;
 * else one warning is all. Any thread. */
int name_check(struct container *c);

/* The same, whatever the time is. */
int name_check_now(struct container *c);

#endif
