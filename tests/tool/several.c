/*
 * A program for `pm crash` that does what the ledger does not, and its own check.
 *
 *     several DIRECTORY            two processes in turn, two containers, one of them deleted and
 *                                  made again, growth, asynchronous commits
 *     several --check DIRECTORY    exact: each container holds the number of commits that it has had
 *     several --scribble FILE      makes a container, commits, and destroys it by write(2)
 *     several --unsafe FILE        commits under PM_UNSAFE_POWER
 *     several --shrink FILE        the file gets smaller, and its new size is printed
 *     several --lead-out FILE      commits a pointer that leads out of the container
 */
#include <libpm.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct root {
    long commits;
    enum { BOTH, DELETING, DELETED } phase; /* of the other container */
    char *large;
};

static _Noreturn void die(const char *what)
{
    printf("%s: %s\n", what, pm_errormsg());
    exit(2);
}

static void path_in(char *path, const char *directory, const char *name)
{
    snprintf(path, 256, "%s/%s", directory, name);
}

static pm_container *open_in(const char *directory, const char *name, unsigned flags)
{
    char path[256];
    path_in(path, directory, name);
    struct pm_options options = {.size = sizeof options, .max_size = 64 << 20};
    options.segment_size = 64 << 10;
    options.flags = flags;
    pm_container *c = pm_open(path, &options);
    if (!c)
        die("pm_open");
    return c;
}

/* As of the commit that follows. */
static struct root *change(pm_container *c)
{
    struct root *r = pm_getroot(c);
    if (!r) {
        r = pm_calloc(c, 1, sizeof *r);
        pm_setroot(c, r, 0);
    }
    r->commits++;
    return r;
}

static void commit(pm_container *c)
{
    change(c);
    if (pm_commit(c) != 0)
        die("pm_commit");
}

static void first_process(const char *directory)
{
    pm_container *a = open_in(directory, "a", PM_CREATE);
    commit(a);
    pm_container *b = open_in(directory, "b", PM_CREATE);
    for (int i = 0; i < 3; i++) {
        commit(b);
        commit(a);
    }
    pm_close(a);
    pm_close(b);
}

static void second_process(const char *directory)
{
    pm_container *a = open_in(directory, "a", 0);
    struct root *r = change(a);
    r->large = pm_malloc(a, 300000);
    memset(r->large, 'x', 300000);
    if (pm_commit(a) != 0)
        die("pm_commit");
    change(a);
    pm_ticket ticket = pm_commit_async(a);
    change(a);
    ticket = pm_commit_async(a);
    if (pm_wait(ticket) != 0)
        die("pm_wait");
    change(a)->phase = DELETING;
    if (pm_commit(a) != 0)
        die("pm_commit");
    char path[256];
    path_in(path, directory, "b");
    if (pm_delete(path) != 0)
        die("pm_delete");
    change(a)->phase = DELETED;
    if (pm_commit(a) != 0)
        die("pm_commit");
    pm_container *b = open_in(directory, "b", PM_CREATE);
    commit(b);
    pm_close(b);
    pm_close(a);
}

static int run(const char *directory)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        first_process(directory);
        exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        return 2;
    second_process(directory);
    return 0;
}

/* ---- the check ------------------------------------------------------------------------------- */

static struct root look(const char *directory, const char *name)
{
    pm_container *c = open_in(directory, name, 0);
    struct root *r = pm_getroot(c), copy = r ? *r : (struct root){0};
    for (int i = 0; copy.large && i < 300000; i++)
        if (copy.large[i] != 'x')
            die("the large object");
    pm_close(c);
    return copy;
}

static int check(const char *directory)
{
    const char *commits = getenv("LIBPM_CRASH_COMMITS");
    char path[256];
    path_in(path, directory, "b");
    long of_a = 0, of_b = 0, of_second_b = 0;
    if (!commits || sscanf(commits, "%ld %ld %ld", &of_a, &of_b, &of_second_b) != 3)
        return printf("not told how many commits\n"), 1;
    struct root a = look(directory, "a");
    long in_flight = of_a >= 5 ? 2 : 1; /* the asynchronous ones */
    if (a.commits < of_a || a.commits > of_a + in_flight)
        return printf("a has %ld commits, not %ld\n", a.commits, of_a), 1;
    if (access(path, F_OK) != 0)
        return a.commits > 1 && a.phase == BOTH;
    struct root b = look(directory, "b");
    bool again = b.commits < 2 && a.phase != BOTH;
    if (a.phase == DELETED && !again)
        return printf("b was deleted, and is back\n"), 1;
    long should = again ? of_second_b : of_b;
    if (b.commits != should && b.commits != should + 1)
        return printf("b has %ld commits, not %ld\n", b.commits, should), 1;
    return 0;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int scribble(const char *path)
{
    pm_container *c = open_in("/", path, PM_CREATE);
    commit(c);
    int file = open(path, O_WRONLY);
    char garbage[8192];
    memset(garbage, 'g', sizeof garbage);
    return pwrite(file, garbage, sizeof garbage, 0) == sizeof garbage ? 0 : 2;
}

static int unsafe(const char *path)
{
    pm_container *c = open_in("/", path, PM_CREATE | PM_UNSAFE_POWER);
    commit(c);
    return pm_close(c);
}

/* The program does not mind, but pm_check() does. */
static int lead_out(const char *path)
{
    struct pm_options how = {
        .size = sizeof how, .flags = PM_CREATE | PM_MOVABLE, .foreign_pointers = PM_FOREIGN_IGNORE};
    pm_container *c = pm_open(path, &how);
    if (!c)
        die("pm_open");
    char **pointer = pm_calloc(c, 1, sizeof *pointer);
    if (!pointer || pm_setroot(c, pointer, 0) != 0 || pm_mark_pointer(pointer) != 0)
        die("pm_calloc");
    char *elsewhere = *pointer = malloc(100);
    commit(c);
    free(elsewhere);
    return pm_close(c);
}

static int shrink(const char *path)
{
    pm_container *c = open_in("/", path, PM_CREATE | PM_MOVABLE);
    void *large = pm_malloc(c, 1 << 20);
    commit(c);
    pm_free(large);
    commit(c);
    if (pm_compact(c, NULL, NULL, NULL) != 0)
        die("pm_compact");
    struct pm_stats is = {.size = sizeof is};
    pm_stats(c, &is);
    printf("%llu\n", (unsigned long long)is.file_bytes);
    fflush(stdout);
    commit(c);
    return pm_close(c);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return run(argv[1]);
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "--check") == 0)
        return check(argv[2]);
    if (strcmp(argv[1], "--shrink") == 0)
        return shrink(argv[2]);
    if (strcmp(argv[1], "--lead-out") == 0)
        return lead_out(argv[2]);
    return strcmp(argv[1], "--scribble") == 0 ? scribble(argv[2]) : unsafe(argv[2]);
}
