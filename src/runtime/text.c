/*
 * Wrappers of the sprintf family and of strtok. They announce after the call, when it is known how much
 * was written. The number that a conversion "%n" writes is not announced.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE

#include "runtime/announce.h"
#include "runtime/heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

int __vsprintf_chk(char *, int, size_t, const char *, va_list);
int __vsnprintf_chk(char *, size_t, int, size_t, const char *, va_list);
int __vswprintf_chk(wchar_t *, size_t, int, size_t, const wchar_t *, va_list);

/* `p` has got a text of `length` bytes, cut to `room`; -1: an error broke it off. */
static int written(char *p, size_t room, int length)
{
    if (in_arena(p) && room) {
        size_t bytes = length < 0 ? strnlen(p, room) : (size_t)length;
        announce(p, bytes < room ? bytes + 1 : room);
    }
    return length;
}

EXPORT int pm__vsprintf(char *p, const char *format, va_list list);
EXPORT int pm__vsprintf(char *p, const char *format, va_list list)
{
    return written(p, PTRDIFF_MAX, vsprintf(p, format, list));
}

EXPORT int pm__vsnprintf(char *p, size_t n, const char *format, va_list list);
EXPORT int pm__vsnprintf(char *p, size_t n, const char *format, va_list list)
{
    return written(p, n, vsnprintf(p, n, format, list));
}

EXPORT int pm____vsprintf_chk(char *p, int flag, size_t room, const char *format, va_list list);
EXPORT int pm____vsprintf_chk(char *p, int flag, size_t room, const char *format, va_list list)
{
    return written(p, PTRDIFF_MAX, __vsprintf_chk(p, flag, room, format, list));
}

EXPORT int pm____vsnprintf_chk(char *p, size_t n, int flag, size_t room, const char *format,
                               va_list list);
EXPORT int pm____vsnprintf_chk(char *p, size_t n, int flag, size_t room, const char *format,
                               va_list list)
{
    return written(p, n, __vsnprintf_chk(p, n, flag, room, format, list));
}

/* The same for wide characters; -1 may also mean that there is not enough room. */
static int written_wide(wchar_t *p, size_t room, int length)
{
    announce(p, (length < 0 ? room : (size_t)length + 1) * sizeof *p);
    return length;
}

EXPORT int pm__vswprintf(wchar_t *p, size_t n, const wchar_t *format, va_list list);
EXPORT int pm__vswprintf(wchar_t *p, size_t n, const wchar_t *format, va_list list)
{
    return written_wide(p, n, vswprintf(p, n, format, list));
}

EXPORT int pm____vswprintf_chk(wchar_t *p, size_t n, int flag, size_t room, const wchar_t *format,
                               va_list list);
EXPORT int pm____vswprintf_chk(wchar_t *p, size_t n, int flag, size_t room, const wchar_t *format,
                               va_list list)
{
    return written_wide(p, n, __vswprintf_chk(p, n, flag, room, format, list));
}

/* Define the function with "..." by the function that takes a va_list. */
#define VARIADIC(name, parameters, call)                                                           \
    EXPORT int name parameters;                                                                    \
    EXPORT int name parameters                                                                     \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, format);                                                                    \
        int length = call;                                                                         \
        va_end(list);                                                                              \
        return length;                                                                             \
    }

VARIADIC(pm__sprintf, (char *p, const char *format, ...), pm__vsprintf(p, format, list))
VARIADIC(pm__snprintf, (char *p, size_t n, const char *format, ...),
         pm__vsnprintf(p, n, format, list))
VARIADIC(pm____sprintf_chk, (char *p, int flag, size_t room, const char *format, ...),
         pm____vsprintf_chk(p, flag, room, format, list))
VARIADIC(pm____snprintf_chk, (char *p, size_t n, int flag, size_t room, const char *format, ...),
         pm____vsnprintf_chk(p, n, flag, room, format, list))
VARIADIC(pm__swprintf, (wchar_t * p, size_t n, const wchar_t *format, ...),
         pm__vswprintf(p, n, format, list))
VARIADIC(pm____swprintf_chk,
         (wchar_t * p, size_t n, int flag, size_t room, const wchar_t *format, ...),
         pm____vswprintf_chk(p, n, flag, room, format, list))

/* libc's strtok() hides its place, so this strtok() keeps its own, one a thread. */
_Thread_local char *pm__strtok_rest;

EXPORT char *pm__strtok_r(char *s, const char *set, char **rest);

EXPORT char *pm__strtok(char *s, const char *set);
EXPORT char *pm__strtok(char *s, const char *set)
{
    return pm__strtok_r(s, set, &pm__strtok_rest);
}
