/* A plugin that keeps a count in a container, for a program that knows nothing of libpm. */
#include <libpm.h>
#include <stdio.h>

/* How often it was called with this path; -1 if that failed. */
int count(const char *path)
{
    pm_container *c =
        pm_open(path, &(struct pm_options){.size = sizeof(struct pm_options), .flags = PM_CREATE});
    if (c) {
        int *counter = pm_getroot(c), value;
        if (!counter && (counter = pm_calloc(c, 1, sizeof *counter)))
            pm_setroot(c, counter, 0);
        if (counter && (value = ++*counter) && pm_commit(c) == 0 && pm_close(c) == 0)
            return value;
    }
    fprintf(stderr, "plugin: %s\n", pm_errormsg());
    return -1;
}
