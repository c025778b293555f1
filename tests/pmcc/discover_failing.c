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

static pm_container *must_open(void)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE | PM_DISCOVER};
    pm_container *c = pm_open(path, &options);
    assert(c);
    return c;
}

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

/* A function has failed, and said so. */
static void check_refusal(pm_container *c)
{
    assert(strstr(pm_errormsg(), path));
    check_places(c);
}

/* One has that should not, but for a call. */
static void check_failure(pm_container *c)
{
    assert(has_failed());
    check_refusal(c);
}

static int commit(void *c)
{
    set_window(true);
    int result = pm_commit(c);
    set_window(false);
    return result;
}

static void keep(pm_container *c)
{
    int result = commit(c);
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
    assert(commit(c) != 0);
    check_refusal(c);
    pthread_barrier_wait(&barrier);
    assert(pthread_join(thread, NULL) == 0 && pthread_barrier_destroy(&barrier) == 0);
}

/* A function that pmcc has not compiled may hold pointers, however little of its stack is known. */
static void commit_by_foreign_code(pm_container *c)
{
    assert(foreign_call(commit, c) != 0);
    check_refusal(c);
}

static void work(void)
{
    free(allocate(1)); /* the heap comes first */
    pm_container *c = must_open();
    push(100); /* more than tables have room for at first; so is the other list */
    push_aside(1100);
    assert(pm_setroot(c, head, 0) == 0);
    keep(c);
    push(100);
    assert(pm_setroot(c, head, 0) == 0);
    commit_beside_a_thread(c);
    commit_by_foreign_code(c);
    keep(c);
    pop(c);
    keep(c);
    assert(pm_check(c) == 0 && pm_close(c) == 0);

    c = must_open();
    head = pm_getroot(c);
    second = head->next;
    check_places(c);
    assert(pm_close(c) == 0);
}

/* In a process of its own: whether the call was made that often. */
static bool run(unsigned call, uint64_t after, bool throughout)
{
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        fail(call, after, throughout);
        work();
        _exit(has_failed() ? FAILED : NOT_MADE);
    }
    int status;
    assert(waitpid(child, &status, 0) == child);
    unlink(path);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != FAILED && WEXITSTATUS(status) != NOT_MADE)) {
        fprintf(stderr, "where %s fails after %llu others%s: wait status %#x\n", call_name(call),
                (unsigned long long)after, throughout ? ", and then again" : "", (unsigned)status);
        exit(EXIT_FAILURE);
    }
    return WEXITSTATUS(status) == FAILED;
}

/* As much as there is of a size. */
static void take_all(size_t size)
{
    void *volatile p; /* or the compiler would think that there is always more */
    do
        p = malloc(size);
    while (p);
    assert(errno == ENOMEM);
}

/* When all addresses of the heap are in use, nothing moves there, and nothing else happens. Only their
 * table takes memory, 1 GiB. */
static void fill_the_heap(void)
{
    free(allocate(1));
    pm_container *c = must_open();
    push(100);
    assert(pm_setroot(c, head, 0) == 0);
    keep(c);
    enum { ROOM = 4 };
    size_t none = 0, room = ROOM;
    char *no_line = NULL, *line = malloc(room);
    void *volatile node = malloc(sizeof *head);
    void *p = NULL;
    for (size_t size = (size_t)1 << 39; size >= 16; size /= 2)
        take_all(size);
    assert(posix_memalign(&p, 64, 64) == ENOMEM && !p);
    FILE *file = fopen("/proc/self/status", "r"); /* whose lines are longer */
    assert(file && getline(&no_line, &none, file) == -1 && !no_line && none == 0);
    assert(getline(&line, &room, file) == -1 && room == ROOM && fclose(file) == 0);
    /* There is room for the first of the list, but not for all. */
    free(node);
    assert(pm_setroot(c, NULL, 0) == 0 && !pm_detach(head) && errno == ENOMEM);
    check_refusal(c);
    assert(pm_check(c) == 0 && pm_close(c) == 0 && unlink(path) == 0);
}

int main(void)
{
    assert(close(mkstemp(path)) == 0 && unlink(path) == 0);
    for (unsigned call = 0; call_name(call); call++) {
        uint64_t made = 0;
        /* The last one may be made in some runs only: a thread that has ended can be seen for a moment. */
        for (; run(call, made, false); made++)
            assert(run(call, made, true) || !run(call, made, false));
        printf("%s: %llu\n", call_name(call), (unsigned long long)made);
        assert(made > 0);
    }
    fill_the_heap();
    return 0;
}
