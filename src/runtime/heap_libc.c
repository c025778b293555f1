/*
 * Functions of libc that return memory, on top of those of heap.h. Such memory is in the arena and
 * belongs to the program. So the stores to it are announced, as the wrappers of other functions do.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE

#include "runtime/heap.h"

#include "runtime/announce.h"

#include <errno.h>
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

/* Make room for at least two more characters. The line may be anyone's memory. */
static bool grow(char **line, size_t *size)
{
    size_t bytes = *line && *size >= LINE_ROOM / 2 ? 2 * *size : LINE_ROOM;
    char *p = pm__realloc(*line, bytes);
    if (!p)
        return false;
    set_pointer(line, p);
    announce_object(size);
    *size = bytes;
    return true;
}

/* The number of characters; -1 at the end of input, or without memory. */
static ssize_t read_until(char **line, size_t *size, int end, FILE *file)
{
    size_t used = 0;
    if ((!*line || *size < 2) && !grow(line, size))
        return -1;
    for (int c; (c = getc_unlocked(file)) != EOF;) {
        if (used + 2 > *size && !grow(line, size))
            return -1;
        (*line)[used++] = (char)c;
        if (c == end)
            break;
    }
    (*line)[used] = 0;
    announce(*line, used + 1);
    return used ? (ssize_t)used : -1;
}

EXPORT ssize_t pm__getdelim(char **line, size_t *size, int end, FILE *file)
{
    if (!line || !size || !file) {
        errno = EINVAL;
        return -1;
    }
    flockfile(file);
    ssize_t length = read_until(line, size, end, file);
    funlockfile(file);
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
