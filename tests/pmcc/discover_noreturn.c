/* A function that does not return commits. The return address into main() is then behind main()'s last
 * instruction. It may belong to another function, or to none. */
#include <libpm.h>

#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

struct node {
    struct node *next;
};

_Noreturn void serve(void);

__attribute__((noinline)) _Noreturn void serve(void)
{
    char path[] = "/dev/shm/libpm-noreturn-XXXXXX";
    int fd = mkstemp(path);
    assert(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE | PM_DISCOVER};
    pm_container *c = pm_open(path, &options);
    assert(c);
    struct node *node = calloc(1, sizeof *node);
    assert(node && pm_setroot(c, node, 0) == 0 && pm_commit(c) == 0);
    assert(pm_contains(c, pm_getroot(c)) && pm_close(c) == 0);
    unlink(path);
    exit(0);
}

int main(void)
{
    serve();
}

/* It is in no table. */
__attribute__((disable_sanitizer_instrumentation, used)) static int behind(int n)
{
    return n + 1;
}
