/*
 * What discovery does while calls fail: a commit or pm_detach() that fails says so and moves nothing,
 * and the next one works.
 */
#define _GNU_SOURCE
#include "failing.h"

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <libpm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct node {
    struct node *next;
    long number;
};

static char path[] = "/dev/shm/libpm-failing-XXXXXX";
static struct node *head, *second; /* the list, and its second node */
static long count, kept;           /* nodes; of these in the container */
static struct node *aside;         /* a list that stays on the heap */

/* Exit statuses of a run that is right: the call has failed, or was not made so often. */
enum { FAILED = 70, NOT_MADE };

static void *allocate(size_t size)
{
    set_window(true);
    void *p = malloc(size);
    set_window(false);
    if (p)
        return p;
    assert(errno == ENOMEM && has_failed());
    p = malloc(size);
    if (!p) /* its first call has failed, and is not repeated */
        _exit(FAILED);
    return p;
}

static void push(long n)
{
    for (; n > 0; n--) {
        struct node *node = allocate(sizeof *node);
        *node = (struct node){head, count++};
        second = head;
        head = node;
    }
}

static void push_aside(long n)
{
    for (; n > 0; n--) {
        struct node *node = malloc(sizeof *node);
        assert(node);
        *node = (struct node){aside, n};
        aside = node;
    }
}

static void check(void)
{
    long n = count;
    assert(second == head->next);
    for (const struct node *node = head; node; node = node->next)
        assert(node->number == --n);
    assert(n == 0);
    for (const struct node *node = aside; node; node = node->next)
        assert(node->number == ++n);
}

/* Those that commits have moved are in the container, and no others. */
static void check_places(pm_container *c)
{
    check();
    for (const struct node *node = head; node; node = node->next)
        assert(pm_contains(c, node) == (node->number < kept));
}

/* After a function has failed. */
static void check_failure(pm_container *c)
{
    assert(has_failed() && strstr(pm_errormsg(), path));
    check_places(c);
}

static void keep(pm_container *c)
{
    set_window(true);
    int result = pm_commit(c);
    set_window(false);
    if (result != 0) {
        check_failure(c);
        result = pm_commit(c);
    }
    if (result != 0)
        fprintf(stderr, "%s\n", pm_errormsg());
    assert(result == 0);
    kept = count;
    check_places(c);
}

/* Take the first node back to the heap, and free it. */
static void pop(pm_container *c)
{
    struct node *node = head;
    pm_setroot(c, head->next, 0);
    set_window(true);
    void *detached = pm_detach(node);
    set_window(false);
    if (!detached) {
        check_failure(c);
        detached = pm_detach(node);
    }
    assert(detached && detached == head && !pm_contains(c, detached));
    kept--;
    check_places(c);
    head = second;
    second = head->next;
    count--;
    free(detached);
}

static pthread_barrier_t barrier;

static void *wait_for_commit(void *unused)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

/* Objects do not move while another thread runs, whatever can be found out about it. */
static void commit_beside_a_thread(pm_container *c)
{
    pthread_t thread;
    assert(pthread_barrier_init(&barrier, NULL, 2) == 0);
    assert(pthread_create(&thread, NULL, wait_for_commit, NULL) == 0);
    pthread_barrier_wait(&barrier);
    set_window(true);
    int result = pm_commit(c);
    set_window(false);
    assert(result != 0 && strstr(pm_errormsg(), path));
    check_places(c);
    pthread_barrier_wait(&barrier);
    assert(pthread_join(thread, NULL) == 0 && pthread_barrier_destroy(&barrier) == 0);
}

static void work(void)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE | PM_DISCOVER};
    pm_container *c = pm_open(path, &options);
    assert(c);
    push(100); /* more than tables have room for at first; so is the other list */
    push_aside(1100);
    assert(pm_setroot(c, head, 0) == 0);
    keep(c);
    push(100);
    assert(pm_setroot(c, head, 0) == 0);
    commit_beside_a_thread(c);
    keep(c);
    pop(c);
    keep(c);
    assert(pm_check(c) == 0 && pm_close(c) == 0);

    options.flags = PM_DISCOVER;
    c = pm_open(path, &options);
    assert(c);
    head = pm_getroot(c);
    second = head->next;
    check_places(c);
    assert(pm_close(c) == 0);
}

/* In a process of its own: whether the call was made that often. */
static bool run(unsigned call, uint64_t after)
{
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        fail(call, after);
        work();
        _exit(has_failed() ? FAILED : NOT_MADE);
    }
    int status;
    assert(waitpid(child, &status, 0) == child);
    unlink(path);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != FAILED && WEXITSTATUS(status) != NOT_MADE)) {
        fprintf(stderr, "where %s fails after %llu others: wait status %#x\n", fail(call, 0),
                (unsigned long long)after, (unsigned)status);
        exit(EXIT_FAILURE);
    }
    return WEXITSTATUS(status) == FAILED;
}

int main(void)
{
    assert(close(mkstemp(path)) == 0 && unlink(path) == 0);
    for (unsigned call = 0; fail(call, 0); call++) {
        uint64_t made = 0;
        while (run(call, made))
            made++;
        printf("%s: %llu\n", fail(call, 0), (unsigned long long)made);
        assert(made > 0);
    }
    return 0;
}
