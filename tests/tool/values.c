/*
 * A program for `pm crash` that hands large values over, under the log engine. They are mapped from the file,
 * stored to, freed and rolled back.
 *
 *     values FILE            ten commits
 *     values --check FILE    exact: each value is that of its number, as of one of the commits
 */
#include <libpm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 4, COMMITS = 10 };

struct root {
    long commits;
    struct {
        long number;
        size_t size;
        unsigned char *bytes;
    } value[VALUES];
};

static _Noreturn void die(const char *what)
{
    printf("%s: %s\n", what, pm_errormsg());
    exit(2);
}

static pm_container *open_file(const char *path, unsigned flags)
{
    struct pm_options options = {.size = sizeof options, .flags = flags, .engine = PM_ENGINE_LOG};
    options.max_size = 64 << 20;
    options.segment_size = 1 << 20; /* smaller chunks have no parts of whole pages */
    pm_container *c = pm_open(path, &options);
    if (!c)
        die("pm_open");
    return c;
}

static unsigned char byte_of(long number, size_t i)
{
    return (unsigned char)((size_t)number * 37 + i * 11 + i / 256);
}

/* A value that was stored to has an odd number, and another first byte. */
static int is_right(const struct root *r, int i)
{
    const unsigned char *bytes = r->value[i].bytes;
    long number = r->value[i].number;
    for (size_t at = 0; at < r->value[i].size; at++)
        if (bytes[at] != (unsigned char)(byte_of(number & ~1L, at) ^ (at == 0 && number % 2 == 1)))
            return 0;
    return 1;
}

static void put(pm_container *c, struct root *r, int i, long number)
{
    static unsigned char bytes[300000];
    size_t size = 60000 + (size_t)number * 20011;
    for (size_t at = 0; at < size; at++)
        bytes[at] = byte_of(number, at);
    if (r->value[i].bytes && pm_free(r->value[i].bytes) != 0)
        die("pm_free");
    void *object = pm_put(c, bytes, size);
    if (!object)
        die("pm_put");
    r->value[i].number = number;
    r->value[i].size = size;
    r->value[i].bytes = object;
}

static void commit(pm_container *c, struct root *r)
{
    r->commits++;
    if (pm_commit(c) != 0)
        die("pm_commit");
}

/* A value is stored to in the transaction that has put it, or while it is mapped. */
static void run(const char *path)
{
    pm_container *c = open_file(path, PM_CREATE);
    struct root *r = pm_calloc(c, 1, sizeof *r);
    if (!r || pm_setroot(c, r, 0) != 0)
        die("pm_setroot");
    for (long number = 0; number < COMMITS; number++) {
        int i = (int)(number % VALUES);
        put(c, r, i, number & ~1L);
        if (number % 3 == 1 && pm_rollback(c) != 0)
            die("pm_rollback");
        if (number % 2 == 1) {
            int before = (i + VALUES - 1) % VALUES;
            if (r->value[before].bytes && r->value[before].number % 2 == 0) {
                if (number % 4 == 1) /* else it is mapped */
                    put(c, r, before, r->value[before].number);
                r->value[before].number++;
                r->value[before].bytes[0] ^= 1;
            }
        }
        commit(c, r);
    }
    if (pm_close(c) != 0)
        die("pm_close");
}

static void check(const char *path)
{
    pm_container *c = open_file(path, PM_READONLY);
    const struct root *r = pm_getroot(c);
    for (int i = 0; r && i < VALUES; i++)
        if (r->value[i].bytes && !is_right(r, i)) {
            printf("value %d of %ld commits is wrong\n", i, r->commits);
            exit(1);
        }
    pm_close(c);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--check") == 0)
        check(argv[2]);
    else if (argc == 2)
        run(argv[1]);
    else
        return 2;
    return 0;
}
