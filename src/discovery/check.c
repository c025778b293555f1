#include "discovery/check.h"

#include "base/error.h"

#include <errno.h>
#include <sys/stat.h>

static bool is_alone(void)
{
    struct stat tasks;
    return __libc_single_threaded ||
           (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 2 + 1);
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
