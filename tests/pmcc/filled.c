/*
 * Stores of data around pointers that the same transaction has stored. The pointers must stay pointers: a copy that
 * lies elsewhere shows whether they did.
 *
 * Library functions may write less than they have room for. A program may give more room than its field has, if
 * it knows that the text fits. A loop may store to every other word.
 */
#define _GNU_SOURCE
#include <libpm.h>

#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define ROOM 256

int __xpg_strerror_r(int, char *, size_t);

struct field {
    union {
        char text[64];
        wchar_t wide[16];
    };
    struct field *next;
    char rest[ROOM];
};

enum { TIME, NO_TIME, WIDE_TIME, TRANSFORMED, WIDE_TRANSFORMED, HOST, MESSAGE, FIELDS };

enum { PAIRS = 64, REUSED = 8192 / sizeof(long) };

struct root {
    struct field *fields[FIELDS];
    struct {
        void *pointer;
        long number;
    } pairs[PAIRS];
    long *reused;
};

__attribute__((noinline)) static void set_pointers(struct root *root, long pairs)
{
    for (long i = 0; i < pairs; i++)
        root->pairs[i].pointer = root;
}

__attribute__((noinline)) static void clear_numbers(struct root *root, long pairs)
{
    for (long i = 0; i < pairs; i++)
        root->pairs[i].number = 0;
}

static void fill(struct field *f, int which, size_t room)
{
    time_t now = 0;
    struct tm *t = gmtime(&now);
    switch (which) {
    case TIME:
        assert(strftime(f->text, room, "%Y", t) == 4);
        break;
    case NO_TIME:
        assert(strftime(f->text, room, "", t) == 0);
        break;
    case WIDE_TIME:
        assert(wcsftime(f->wide, room / sizeof(wchar_t), L"%Y", t) == 4);
        break;
    case TRANSFORMED:
        assert(strxfrm(f->text, "abc", room) == 3);
        break;
    case WIDE_TRANSFORMED:
        assert(wcsxfrm(f->wide, L"abc", room / sizeof(wchar_t)) == 3);
        break;
    case HOST:
        assert(gethostname(f->text, room) == 0);
        break;
    case MESSAGE:
        assert(__xpg_strerror_r(1, f->text, room) == 0);
        break;
    }
}

/* An object of pointers, copied page by page, is freed, and data takes its memory. What nobody has stored there
 * since is no pointer. */
static void reuse(pm_container *c, struct root *root)
{
    void **from = pm_malloc(c, REUSED * sizeof *from);
    for (int i = 0; i < REUSED; i++)
        from[i] = root;
    assert(pm_commit(c) == 0);
    void **pointers = pm_malloc(c, REUSED * sizeof *pointers);
    volatile size_t bytes = REUSED * sizeof *pointers;
    memcpy(pointers, from, bytes);
    assert(pm_commit(c) == 0 && pm_free(pointers) == 0 && pm_commit(c) == 0);
    root->reused = pm_malloc(c, bytes);
    assert((void *)root->reused == (void *)pointers);
    for (int i = 0; i < REUSED; i += 8)
        root->reused[i] = 5;
}

int main(void)
{
    char path[] = "/dev/shm/libpm-filled-XXXXXX", copy[sizeof path + 5];
    int fd = mkstemp(path);
    assert(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    snprintf(copy, sizeof copy, "%s.copy", path);
    struct pm_options options = {.size = sizeof options,
                                 .flags = PM_CREATE | PM_MOVABLE,
                                 .tracker = PM_TRACKER_STORES,
                                 .max_size = 64 << 20};
    pm_container *c = pm_open(path, &options);
    assert(c);
    struct root *root = pm_calloc(c, 1, sizeof *root);
    assert(pm_setroot(c, root, 0) == 0);
    volatile size_t room = ROOM;
    for (int i = 0; i < FIELDS; i++) {
        struct field *f = root->fields[i] = pm_calloc(c, 1, sizeof *f);
        f->next = pm_calloc(c, 1, sizeof *f);
        fill(f, i, room);
    }
    volatile long pairs = PAIRS;
    set_pointers(root, pairs);
    clear_numbers(root, pairs);
    reuse(c, root);
    const long *reused = root->reused;
    assert(pm_commit(c) == 0 && pm_copy(c, copy, NULL, NULL) == 0);
    pm_container *d = pm_open(copy, &options);
    assert(d);
    root = pm_getroot(d);
    for (int i = 0; i < FIELDS; i++)
        if (!pm_contains(d, root->fields[i]->next)) {
            fprintf(stderr, "the pointer behind field %d is none any more\n", i);
            return 1;
        }
    for (int i = 0; i < PAIRS; i++)
        assert(root->pairs[i].pointer == root);
    for (int i = 0; i < REUSED; i++)
        assert(root->reused[i] == reused[i]);
    pm_close(d);
    pm_close(c);
    unlink(path);
    unlink(copy);
}
