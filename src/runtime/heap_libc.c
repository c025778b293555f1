/*
 * Functions of libc that return memory, on top of those of heap.h. Such memory is in the arena and
 * belongs to the program. So the stores to it are announced, as the wrappers of other functions do.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE

#include "runtime/heap.h"

#include "runtime/announce.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

int __vsnprintf_chk(char *, size_t, int, size_t, const char *, va_list);

#define LINE_ROOM 120 /* bytes first allocated for a line */

EXPORT void *pm__valloc(size_t size)
{
    return pm__memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

static void *copy_of(const void *from, size_t size)
{
    void *p = pm__malloc(size);
    if (p) {
        announce(p, size);
        memcpy(p, from, size);
    }
    return p;
}

EXPORT char *pm__strdup(const char *s)
{
    return copy_of(s, strlen(s) + 1);
}

EXPORT char *pm__strndup(const char *s, size_t n)
{
    size_t length = strnlen(s, n);
    char *p = pm__malloc(length + 1);
    if (p) {
        announce(p, length + 1);
        *(char *)mempcpy(p, s, length) = 0;
    }
    return p;
}

EXPORT wchar_t *pm__wcsdup(const wchar_t *s)
{
    return copy_of(s, (wcslen(s) + 1) * sizeof *s);
}

static void set_pointer(char **place, char *p)
{
    announce_pointer(place);
    *place = p;
}

/* ---- formatted text -------------------------------------------------------------------------- */

EXPORT int pm____vasprintf_chk(char **result, int flag, const char *format, va_list list);
EXPORT int pm____vasprintf_chk(char **result, int flag, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int length = __vsnprintf_chk(NULL, 0, flag, SIZE_MAX, format, again);
    va_end(again);
    char *p = length < 0 ? NULL : pm__malloc((size_t)length + 1);
    if (p) {
        announce(p, (size_t)length + 1);
        __vsnprintf_chk(p, (size_t)length + 1, flag, SIZE_MAX, format, list);
    }
    set_pointer(result, p);
    return p ? length : -1;
}

EXPORT int pm__vasprintf(char **result, const char *format, va_list list)
{
    return pm____vasprintf_chk(result, 0, format, list);
}

EXPORT int pm____asprintf_chk(char **result, int flag, const char *format, ...);
EXPORT int pm____asprintf_chk(char **result, int flag, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = pm____vasprintf_chk(result, flag, format, list);
    va_end(list);
    return length;
}

EXPORT int pm__asprintf(char **result, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = pm__vasprintf(result, format, list);
    va_end(list);
    return length;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A line that is being read. The line may be anyone's memory. */
struct reading {
    char **line;
    size_t *size;
    FILE *file;
    size_t stored; /* bytes of the line */
};

/* Make room for at least two more characters. The old memory may stay in use, or be freed: so what was
 * stored there is announced first. A line of size 0 is not ours to free, wherever it leads. */
static bool grow(struct reading *r)
{
    announce(*r->line, r->stored);
    size_t bytes = *r->line && *r->size >= LINE_ROOM / 2 ? 2 * *r->size : LINE_ROOM;
    char *p = *r->size == 0 ? pm__malloc(bytes) : pm__realloc(*r->line, bytes);
    if (!p)
        return false;
    set_pointer(r->line, p);
    announce_object(r->size);
    *r->size = bytes;
    return true;
}

/* The number of characters; -1 at the end of input, or without memory. Like glibc, it leaves the line alone
 * if there is no more input. */
static ssize_t read_until(struct reading *r, int end)
{
    if ((!*r->line || *r->size == 0) && !grow(r))
        return -1;
    for (int c; (c = getc_unlocked(r->file)) != EOF;) {
        if (r->stored + 2 > *r->size && !grow(r))
            return -1;
        (*r->line)[r->stored++] = (char)c;
        if (c == end)
            break;
    }
    if (r->stored == 0)
        return -1;
    (*r->line)[r->stored++] = 0;
    return (ssize_t)r->stored - 1;
}

/* This also runs if reading waits, and the thread is cancelled. */
static void end_reading(void *reading)
{
    struct reading *r = reading;
    announce(*r->line, r->stored);
    funlockfile(r->file);
}

EXPORT ssize_t pm__getdelim(char **line, size_t *size, int end, FILE *file)
{
    if (!line || !size || !file) {
        errno = EINVAL;
        return -1;
    }
    struct reading r = {line, size, file, 0};
    ssize_t length;
    flockfile(file);
    pthread_cleanup_push(end_reading, &r);
    length = read_until(&r, end);
    pthread_cleanup_pop(true);
    return length;
}

/* <stdio.h> makes this of getline() in optimised code. */
EXPORT ssize_t pm____getdelim(char **line, size_t *size, int end, FILE *file);
EXPORT ssize_t pm____getdelim(char **line, size_t *size, int end, FILE *file)
{
    return pm__getdelim(line, size, end, file);
}

EXPORT ssize_t pm__getline(char **line, size_t *size, FILE *file)
{
    return pm__getdelim(line, size, '\n', file);
}
