#include "discover.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct test_case *cases;
static char path[] = "/dev/shm/libpm-discover-XXXXXX";

void add_case(struct test_case *test_case)
{
    test_case->next = cases;
    cases = test_case;
}

static pm_container *must_open(unsigned flags, enum pm_freed_pointers freed)
{
    struct pm_options options = {
        .size = sizeof options, .flags = flags | PM_DISCOVER, .freed_pointers = freed};
    pm_container *c = pm_open(path, &options);
    if (!c)
        fprintf(stderr, "%s\n", pm_errormsg());
    assert(c);
    return c;
}

pm_container *fresh(unsigned flags)
{
    unlink(path);
    return must_open(flags | PM_CREATE, PM_FREED_DATA);
}

pm_container *fresh_that_refuses(void)
{
    unlink(path);
    return must_open(PM_CREATE, PM_FREED_ERROR);
}

pm_container *again(pm_container *c)
{
    assert(pm_close(c) == 0);
    return must_open(0, PM_FREED_DATA);
}

__attribute__((noinline)) void keep_changes(pm_container *c)
{
    int result = pm_commit(c);
    if (result != 0)
        fprintf(stderr, "%s\n", pm_errormsg());
    assert(result == 0);
}

__attribute__((noinline)) void keep_all(pm_container *c, void *root)
{
    assert(pm_setroot(c, root, 0) == 0);
    keep_changes(c);
}

static void remove_file(void)
{
    unlink(path);
}

__attribute__((noinline)) static int run_cases(int count, char **names)
{
    assert(close(mkstemp(path)) == 0 && atexit(remove_file) == 0);
    for (const struct test_case *t = cases; t; t = t->next)
        if (count == 1 || strcmp(names[1], t->name) == 0) {
            fprintf(stderr, "%s\n", t->name);
            t->run();
        }
    return 0;
}

/* Nothing follows the call, and yet all cases' commits are to find this function on the stack. */
int main(int count, char **names)
{
    return run_cases(count, names);
}
