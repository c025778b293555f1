/*
 * What other threads see while commits go on. A commit that must not move objects because of the threads leaves
 * the objects alone. pm_include() beside a commit keeps the field's value.
 */
#include <libpm.h>

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OBJECTS = 1000, COMMITS = 200, INCLUDES = 3000 };

struct object {
    volatile long number;
    long more[10];
};

struct root {
    struct object *shared, *all[OBJECTS];
    void *excluded;
    long counter;
};

static struct object *shared;
static pm_container *container;
static struct root *root;
static atomic_bool stopping;
static atomic_long wrong;

static void *store_and_look(void *nothing)
{
    for (long n = 1000000; !stopping; n++) {
        shared->number = n;
        for (int i = 0; i < 50; i++)
            wrong += shared->number != n;
    }
    return nothing;
}

/* Only this thread commits, and only the other one includes and excludes. */
static void *commit_always(void *nothing)
{
    while (!stopping) {
        root->counter++;
        assert(pm_commit(container) == 0);
    }
    return nothing;
}

static void test_failing_commits(void)
{
    pthread_t other;
    shared = calloc(1, sizeof *shared);
    assert(pthread_create(&other, NULL, store_and_look, NULL) == 0);
    root->shared = shared;
    for (int i = 0; i < OBJECTS; i++)
        root->all[i] = calloc(1, sizeof(struct object));
    for (int i = 0; i < COMMITS; i++)
        assert(pm_commit(container) == -1 && errno == EINVAL);
    stopping = true;
    pthread_join(other, NULL);
    assert(wrong == 0);
    assert(pm_commit(container) == 0);
    stopping = false;
}

static void test_include(void)
{
    pthread_t other;
    void *value = &stopping; /* any that is not NULL */
    root->excluded = value;
    assert(pm_exclude(&root->excluded) == 0 && pm_commit(container) == 0);
    assert(pthread_create(&other, NULL, commit_always, NULL) == 0);
    for (int i = 0; i < INCLUDES; i++) {
        assert(pm_include(&root->excluded) == 0);
        assert(*(void *volatile *)&root->excluded == value);
        assert(pm_exclude(&root->excluded) == 0);
    }
    stopping = true;
    pthread_join(other, NULL);
}

int main(void)
{
    char path[] = "/dev/shm/libpm-beside-XXXXXX";
    int fd = mkstemp(path);
    assert(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    struct pm_options options = {.size = sizeof options,
                                 .flags = PM_CREATE | PM_DISCOVER,
                                 .foreign_pointers = PM_FOREIGN_IGNORE};
    container = pm_open(path, &options);
    assert(container);
    root = calloc(1, sizeof *root);
    assert(pm_setroot(container, root, 0) == 0 && pm_commit(container) == 0);
    root = pm_getroot(container);
    test_failing_commits();
    test_include();
    pm_close(container);
    unlink(path);
}
