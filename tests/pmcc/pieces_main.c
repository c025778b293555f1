/* Calls the functions of a program made up at random, see pieces.h:    PROGRAM [DIRECTORY] */
#include "pieces.h"

#include <errno.h>
#include <inttypes.h>
#include <libpm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TARGET_BYTES = 256, FUNCTIONS_MAX = 1000 };

struct objects {
    char *a, *b, *t;
};

/* What became of a word. */
static struct state {
    uint64_t value; /* when it was committed */
    bool declared;  /* pm_mark_data() has been called of it */
} *states[FUNCTIONS_MAX];
static long pointers_moved, refused, failed;
static char path[2][64];

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, pm_errormsg());
    exit(2);
}

/* A defect: in which function, in which word, and what should be there. */
static void report(const struct function *f, const struct word *w, const char *what, uint64_t is,
                   uint64_t should)
{
    printf("function %d: %c + %d: %s: is %#" PRIx64 ", should be %#" PRIx64 "\n", f->number,
           "ab"[w->object], WORD * w -> word, what, is, should);
    failed++;
}

static void remove_files(void)
{
    unlink(path[0]);
    unlink(path[1]);
}

static pm_container *open_at(const char *name, unsigned flags)
{
    struct pm_options options = {.size = sizeof options,
                                 .flags = PM_MOVABLE | flags,
                                 .tracker = PM_TRACKER_STORES,
                                 .max_size = 64 << 20,
                                 .segment_size = 64 << 10};
    pm_container *c = pm_open(name, &options);
    if (!c)
        stop("open");
    return c;
}

/* ---- words ----------------------------------------------------------------------------------- */

static char *place_of(const struct objects *o, const struct word *w)
{
    return (w->object == 0 ? o->a : o->b) + WORD * w->word;
}

static uint64_t value_at(const char *place)
{
    uint64_t value;
    memcpy(&value, place, sizeof value);
    return value;
}

static uint64_t value_of(const struct objects *o, const struct word *w, uint64_t *known)
{
    uint64_t value = 0;
    *known = 0;
    for (int i = 0; i < WORD; i++) {
        uint32_t code = w->bytes[i];
        uint64_t byte = code & UINT8_MAX;
        if (code >> 31)
            byte ^= ((uint64_t)o->t + (code >> 16 & 0xff)) >> 8 * (code >> 8 & 7) & UINT8_MAX;
        value |= byte << 8 * i;
        if (!(code & UNKNOWN))
            *known |= (uint64_t)UINT8_MAX << 8 * i;
    }
    return value;
}

/* 0: zero; below 256: the pointer to t at that distance; others are numbers. */
static uint64_t filled_value(const struct objects *o, uint32_t code)
{
    return code == 0 ? 0 : code < 256 ? (uint64_t)o->t + code : code * UINT64_C(0x10001000100);
}

static bool leads(const pm_container *c, uint64_t value)
{
    return pm_contains(c, (const void *)value);
}

/* ---- the first run --------------------------------------------------------------------------- */

static void fill(const struct objects *o, const uint32_t *codes)
{
    for (int i = 0; i < 2 * WORDS; i++) {
        char *word = i < WORDS ? o->a + WORD * i : o->b + WORD * (i - WORDS);
        if (codes[i] > 0 && codes[i] < 256)
            *(void *volatile *)word = o->t + codes[i];
        else
            *(volatile uint64_t *)word = filled_value(o, codes[i]);
    }
}

/* Compare a word as the function has left it, or as it was filled if the function did not change it. */
static void check(const struct function *f, const struct objects *o)
{
    const struct word *w = f->words;
    for (int i = 0; i < 2 * WORDS; i++) {
        struct word here = {.object = i / WORDS, .word = i % WORDS};
        uint64_t known = UINT64_MAX, should = filled_value(o, f->filled[i]);
        if (w < f->words + f->count && w->object == here.object && w->word == here.word)
            should = value_of(o, w++, &known);
        uint64_t is = value_at(place_of(o, &here));
        if ((is ^ should) & known)
            report(f, &here, "in memory", is, should);
        states[f - functions][i] = (struct state){is, false};
    }
}

/* A commit was refused, and should not have been. Go on without this function's words. */
static void give_up(const struct function *f, const struct objects *o)
{
    printf("function %d: refused: %s\n", f->number, pm_errormsg());
    failed++;
    memset(o->a, 0, BYTES);
    memset(o->b, 0, BYTES);
    states[f - functions] = NULL;
}

/* A commit was refused. Do what its message says of all words that may have been stored in pieces. False if
 * there are none. */
static bool mend(pm_container *c, const struct function *f, const struct objects *o)
{
    char number[32];
    bool is_named = false;
    /* A word of a pointer and data may lead out. */
    const bool leads_out = strstr(pm_errormsg(), "leads out of the container");
    if (errno != EINVAL || (!leads_out && !strstr(pm_errormsg(), "in pieces")))
        return false;
    for (int i = 0; i < f->count; i++) {
        const struct word *w = &f->words[i];
        char *place = place_of(o, w);
        uint64_t value = value_at(place);
        if (leads_out ? w->is_pointer || w->is_data || leads(c, value)
                      : !w->may_fail || !leads(c, value))
            continue;
        snprintf(number, sizeof number, "%#" PRIx64 " ", value);
        is_named |= strstr(pm_errormsg(), number) != NULL;
        if (w->is_pointer)
            *(void *volatile *)place = (void *)value;
        else if (pm_mark_data(place, WORD) != 0)
            stop("pm_mark_data");
        states[f - functions][w->object * WORDS + w->word].declared = !w->is_pointer;
    }
    refused += is_named;
    return is_named;
}

static void run(pm_container *c, const struct function *f, struct objects *o)
{
    o->a = pm_calloc(c, 1, BYTES);
    o->b = pm_calloc(c, 1, BYTES);
    o->t = pm_calloc(c, 1, TARGET_BYTES);
    if (!o->a || !o->b || !o->t)
        stop("pm_calloc");
    fill(o, f->filled);
    if (f->commits && pm_commit(c) != 0)
        stop("commit");
    f->run(o->a, o->b, o->t, f->n);
    check(f, o);
    int refusals = 0; /* one for words in pieces, one for words that lead out */
    while (pm_commit(c) != 0) {
        if (refusals++ < 2 && mend(c, f, o))
            continue;
        give_up(f, o);
        if (pm_commit(c) != 0)
            stop("commit");
        return;
    }
}

/* ---- opened elsewhere ------------------------------------------------------------------------- */

static void compare(const struct function *f, const struct objects *o, const struct objects *was,
                    const pm_container *old)
{
    const uint64_t distance = (uint64_t)o->t - (uint64_t)was->t;
    const struct word *next = f->words;
    for (int i = 0; i < 2 * WORDS; i++) {
        struct word w = {.object = i / WORDS, .word = i % WORDS};
        const uint32_t code = f->filled[i];
        w.is_pointer = code > 0 && code < 256;
        if (next < f->words + f->count && next->object == w.object && next->word == w.word)
            w = *next++;
        const struct state *s = &states[f - functions][i];
        uint64_t is = value_at(place_of(o, &w)), moved = s->value + distance;
        bool may_lead = leads(old, s->value) && !s->declared;
        /* A word keeps its kind if it is as it was at the last commit. */
        bool is_same = f->commits && s->value == filled_value(was, code);
        if (w.is_pointer && is != moved)
            report(f, &w, "a pointer", is, moved);
        if (!w.is_pointer && is != s->value &&
            (!may_lead || is != moved || (w.is_data && !is_same)))
            report(f, &w, "data", is, s->value);
        pointers_moved += w.is_pointer;
    }
}

int main(int count, char **arguments)
{
    const char *directory = count > 1 ? arguments[1] : "/dev/shm";
    static struct objects was[FUNCTIONS_MAX];
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/libpm-pieces-%d-%d", directory, (int)getpid(), i);
    atexit(remove_files);
    setenv("LIBPM_AUDIT", "1", 1); /* a store without a mark fails the commit */
    pm_container *c = open_at(path[0], PM_CREATE);
    struct objects *root = pm_calloc(c, FUNCTIONS_MAX, sizeof *root);
    if (!root || pm_setroot(c, root, 0) != 0)
        stop("pm_setroot");
    for (int i = 0; i < function_count; i++) {
        states[i] = calloc(2 * WORDS, sizeof *states[i]);
        run(c, &functions[i], &was[i]);
        root[i] = was[i];
    }
    if (pm_commit(c) != 0)
        stop("commit");
    if (pm_close(c) != 0)
        stop("pm_close");
    char command[256];
    snprintf(command, sizeof command, "cp %s %s", path[0], path[1]);
    if (system(command) != 0)
        stop("cp");
    pm_container *old = open_at(path[0], 0), *moved = open_at(path[1], 0);
    const struct objects *is = pm_getroot(moved);
    if (is == pm_getroot(old))
        stop("the copy lies where the container lies");
    for (int i = 0; i < function_count; i++)
        if (states[i])
            compare(&functions[i], &is[i], &was[i], old);
    if (pm_close(old) != 0 || pm_close(moved) != 0)
        stop("pm_close");
    printf("%d functions, %ld pointers, %ld refused\n", function_count, pointers_moved, refused);
    return failed ? 1 : 0;
}
