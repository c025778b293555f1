/*
 * A program that locks all its memory, also what it will map, opens containers of the default size:
 * their tables, of terabytes, are not to be filled for that. And commits and rollbacks see what the file
 * has, not what it had when it was mapped. Status 77: this user may not lock memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <libpm.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* More than a container takes that is mapped three times, less than the smallest of its tables has. */
#define PAGES_MAX (UINT64_C(512) << (20 - 12))

/* Ends the process before the machine has no memory left. It neither allocates nor maps: that waits
 * for who is filling tables. */
static void *watch(void *argument)
{
    const int statm = *(int *)argument;
    unsigned long pages = 0;
    char text[128] = "";
    while (pages < PAGES_MAX) {
        usleep(1000);
        if (pread(statm, text, sizeof text - 1, 0) <= 0)
            _exit(2);
        pages = strtoul(strchr(text, ' '), NULL, 10);
    }
    static const char message[] = "all its tables are in memory\n";
    _exit(write(STDERR_FILENO, message, sizeof message - 1) < 0 ? 3 : 1);
}

static void require(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", what, pm_errormsg());
    exit(1);
}

static struct pm_options options_for(enum pm_engine engine, enum pm_tracker tracker)
{
    return (struct pm_options){.size = sizeof(struct pm_options),
                               .flags = PM_CREATE | PM_UNSAFE_POWER |
                                        (tracker == PM_TRACKER_STORES ? PM_ANNOUNCED : 0),
                               .engine = engine,
                               .tracker = tracker};
}

static void use(const char *path, enum pm_engine engine, enum pm_tracker tracker)
{
    struct pm_options options = options_for(engine, tracker);
    for (int run = 1; run <= 2; run++) {
        pm_container *c = pm_open(path, &options);
        require(c != NULL, "pm_open");
        int *counter = pm_getroot(c);
        if (!counter) {
            counter = pm_calloc(c, 1, sizeof *counter);
            require(counter && pm_setroot(c, counter, 0) == 0, "a root");
        }
        require(pm_dirty(counter, sizeof *counter) == 0, "pm_dirty");
        ++*counter;
        require(pm_commit(c) == 0 && *counter == run, "pm_commit");
        require(pm_check(c) == 0 && pm_close(c) == 0, "pm_close");
    }
    require(pm_delete(path) == 0, "pm_delete");
}

#define LARGE 300000 /* an object of many pages */

static bool is_full_of(const char *object, char byte)
{
    return object[0] == byte && memcmp(object, object + 1, LARGE - 1) == 0;
}

static void fill(char *object, char byte)
{
    require(pm_dirty(object, LARGE) == 0, "pm_dirty");
    memset(object, byte, LARGE);
}

static void change_back(const char *path, enum pm_engine engine, enum pm_tracker tracker)
{
    struct pm_options options = options_for(engine, tracker);
    pm_container *c = pm_open(path, &options);
    char *object = c ? pm_malloc(c, LARGE) : NULL;
    require(object && pm_setroot(c, object, 0) == 0, "an object");
    fill(object, 1); /* by its first commit: the pages behind it are as they were mapped */
    require(pm_commit(c) == 0, "pm_commit");
    fill(object, 2);
    require(pm_rollback(c) == 0 && is_full_of(object, 1), "pm_rollback");
    fill(object, 0);
    require(pm_commit(c) == 0 && pm_close(c) == 0, "pm_commit");
    c = pm_open(path, &options);
    object = c ? pm_getroot(c) : NULL;
    require(object && is_full_of(object, 0), "the last commit");
    require(pm_close(c) == 0 && pm_delete(path) == 0, "pm_delete");
}

int main(void)
{
    int statm = open("/proc/self/statm", O_RDONLY);
    pthread_t watchdog;
    require(statm >= 0 && pthread_create(&watchdog, NULL, watch, &statm) == 0, "a watchdog");
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        fprintf(stderr, "this user may lock no memory: %s\n", strerror(errno));
        return 77;
    }
    const char *directories[] = {"/dev/shm", "/var/tmp"};
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/libpm-locked-XXXXXX", directories[i]);
        int fd = mkstemp(path);
        require(fd >= 0 && remove(path) == 0 && close(fd) == 0, "a name");
        use(path, PM_ENGINE_UNDO, PM_TRACKER_FAULTS);
        use(path, PM_ENGINE_REDO, PM_TRACKER_FAULTS);
        use(path, PM_ENGINE_REDO, PM_TRACKER_STORES);
        change_back(path, PM_ENGINE_UNDO, PM_TRACKER_FAULTS);
        change_back(path, PM_ENGINE_REDO, PM_TRACKER_FAULTS);
        change_back(path, PM_ENGINE_REDO, PM_TRACKER_STORES);
    }
    return 0;
}
