/*
 * kept RUN: a structure of examples/, as it is when it has never heard of libpm (scripts/loc --plain),
 * kept in a container by discovery. Run 0, and then 1, 2...: each finds all keys of the runs before,
 * and adds its own. STRUCTURE names the structure.
 *
 * Exit status: 0; 1 if something is not as it was left; 2 if libpm failed.
 */
#define PASTED(a, b)    a##_##b
#define NAMED(a, b)     PASTED(a, b)
#define MAP(function)   NAMED(STRUCTURE, function)
#define QUOTED(name)    #name
#define HEADER_OF(name) QUOTED(name.h)
#include HEADER_OF(STRUCTURE)

#include <err.h>
#include <libpm.h>
#include <stdlib.h>

enum { KEYS = 3000 /* of a run */, KEYS_PER_COMMIT = 7 };

static uint64_t key_of(uint64_t i)
{
    return i * 0x9e3779b97f4a7c15 >> 7;
}

/* The keys below `end` but for each third, which has been removed. */
static void check(const struct STRUCTURE *map, uint64_t end)
{
    const char *offence = MAP(check)(map);
    if (offence)
        errx(1, "%s", offence);
    for (uint64_t i = 0, value; i < end; i++)
        if (MAP(lookup)(map, key_of(i), &value) != (i % 3 != 0) || (i % 3 != 0 && value != i))
            errx(1, "key %ju of %ju is not as it was left", (uintmax_t)i, (uintmax_t)end);
}

static void commit(pm_container *c)
{
    if (pm_commit(c) != 0)
        errx(2, "%s", pm_errormsg());
}

int main(int argc, char **argv)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE | PM_DISCOVER};
    pm_container *c = pm_open("kept.pm", &options);
    uint64_t begin = argc > 1 ? strtoull(argv[1], NULL, 10) * KEYS : 0;
    struct STRUCTURE *map = c && pm_getroot(c) ? pm_getroot(c) : MAP(create)();
    if (!c || pm_setroot(c, map, 0) != 0)
        errx(2, "%s", pm_errormsg());
    check(map, begin);
    for (uint64_t i = begin; i < begin + KEYS; i++) {
        if (MAP(insert)(map, key_of(i), i) != 1)
            errx(1, "key %ju is there already", (uintmax_t)i);
        if (i % KEYS_PER_COMMIT == 0)
            commit(c);
    }
    for (uint64_t i = begin + (3 - begin % 3) % 3; i < begin + KEYS; i += 3)
        if (MAP(remove)(map, key_of(i)) != 1)
            errx(1, "key %ju is not there", (uintmax_t)i);
    commit(c);
    check(map, begin + KEYS);
    return pm_close(c) == 0 ? 0 : 2;
}
