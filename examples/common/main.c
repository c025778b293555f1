/*
 * A map in a file, from the command line. This source makes four programs: EXAMPLE_MAP names the table
 * of map.h to use, for instance rbtree_ops.
 *
 *     rbtree numbers.pm put 7 49       rbtree numbers.pm get 7       rbtree numbers.pm list
 *
 * All code for persistence is in main(). It opens the container. It takes the map from the root, or
 * makes a new map and sets the root. After a change it commits. Whenever the program dies, the file
 * has the state of the last commit.
 *
 * Exit status: 0; 1 if the key is absent or a check failed; 2 if anything went wrong.
 */
#include "map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILL_PER_COMMIT = 1000 }; /* keys */

static const struct map_ops *const ops = &EXAMPLE_MAP;

static int usage(void)
{
    fprintf(stderr,
            "usage: %s FILE COMMAND\n"
            "  put KEY VALUE   map KEY to VALUE, both unsigned 64-bit numbers\n"
            "  get KEY         print its value\n"
            "  del KEY         remove it\n"
            "  list            print all keys and values\n"
            "  fill N SEED     put N pseudo-random keys, with a commit for each %d\n"
            "  check           verify the container and the %s in it\n",
            ops->name, FILL_PER_COMMIT, ops->name);
    return 2;
}

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", ops->name, what, pm_errormsg());
    return 2;
}

/* Decimal, or hexadecimal after 0x. strtoull() alone would also accept "-1" and "". */
static bool parse(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno;
}

static int print_pair(uint64_t key, uint64_t value, void *arg)
{
    (void)arg;
    printf("%" PRIu64 " %" PRIu64 "\n", key, value);
    return 0;
}

/* The i-th key of a seed (splitmix64, Steele et al. 2014). No key comes twice. */
static uint64_t random_key(uint64_t seed, uint64_t i)
{
    uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static int fill(pm_container *c, void *map, uint64_t count, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        if (ops->insert(c, map, random_key(seed, i), i) < 0)
            return failed("fill");
        if ((i + 1) % FILL_PER_COMMIT == 0 && pm_commit(c))
            return failed("commit");
    }
    return 0;
}

/* Run a command whose arguments have been parsed. The caller commits. */
static int run(pm_container *c, void *map, const char *command, uint64_t first, uint64_t second)
{
    if (!strcmp(command, "put"))
        return ops->insert(c, map, first, second) < 0 ? failed("put") : 0;
    if (!strcmp(command, "del"))
        return !ops->remove(c, map, first);
    if (!strcmp(command, "fill"))
        return fill(c, map, first, second);
    if (!strcmp(command, "get")) {
        uint64_t value;
        if (!ops->lookup(map, first, &value))
            return 1;
        printf("%" PRIu64 "\n", value);
        return 0;
    }
    if (!strcmp(command, "list"))
        return ops->walk(map, print_pair, NULL);

    const char *offence = ops->check(map); /* "check": the only one left */
    if (!offence && pm_check(c))
        offence = pm_errormsg();
    if (offence) {
        fprintf(stderr, "%s: %s\n", ops->name, offence);
        return 1;
    }
    printf("%s of %" PRIu64 " keys: whole\n", ops->name, ops->size(map));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int arguments;
        bool writes;
    } commands[] = {{"put", 2, true},   {"get", 1, false}, {"del", 1, true},
                    {"list", 0, false}, {"fill", 2, true}, {"check", 0, false}};
    size_t which = 0;
    while (argc > 2 && which < sizeof commands / sizeof commands[0] &&
           strcmp(commands[which].name, argv[2]) != 0)
        which++;
    uint64_t number[2] = {0};
    if (argc < 3 || which == sizeof commands / sizeof commands[0] ||
        argc != 3 + commands[which].arguments || (argc > 3 && !parse(argv[3], &number[0])) ||
        (argc > 4 && !parse(argv[4], &number[1])))
        return usage();

    char layout[PM_LAYOUT_MAX + 1];
    snprintf(layout, sizeof layout, "example-%s/1", ops->name);
    /* PM_UNSAFE_POWER: on an ordinary file, commits need only survive the death of the process. */
    pm_container *c = pm_open(
        argv[1], &(struct pm_options){
                     .size = sizeof(struct pm_options),
                     .flags = PM_UNSAFE_POWER | (commands[which].writes ? PM_CREATE : PM_READONLY),
                     .layout = layout,
                 });
    if (!c)
        return failed("open");

    int status = 0;
    void *map = pm_getroot(c);
    if (!map && commands[which].writes) { /* new, or no run has come to its first commit */
        map = ops->create(c);
        if (!map || pm_setroot(c, map, 0))
            status = failed("create");
    }
    if (!map && !status) {
        fprintf(stderr, "%s: %s: nothing in it yet\n", ops->name, argv[1]);
        status = 1;
    }
    if (!status)
        status = run(c, map, argv[2], number[0], number[1]);
    if (!status && commands[which].writes && pm_commit(c))
        status = failed("commit");
    if (pm_close(c)) /* rolls back what was not committed */
        status = failed("close");
    if (fflush(stdout)) {
        perror(ops->name);
        status = 2;
    }
    return status;
}
