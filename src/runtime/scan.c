/*
 * Wrappers of the scanf family. They announce the assigned values after the call. For this they read the
 * format once more: numbers have the size of their length modifier, strings the length that they have
 * now.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE

#include "runtime/isoc23.h"

#include "runtime/announce.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

int __isoc99_vscanf(const char *, va_list);
int __isoc99_vfscanf(FILE *, const char *, va_list);
int __isoc99_vsscanf(const char *, const char *, va_list);

struct conversion {
    char letter;
    bool is_assigned, is_allocated;
    size_t size;     /* bytes of a number, or of a character */
    size_t width;    /* 0: none given */
    size_t position; /* of "%3$d"; 0: none given */
};

/* Read the number at *format, 0 if none, and move past it. */
static size_t number(const char **format)
{
    char *end;
    size_t value = **format >= '0' && **format <= '9' ? strtoul(*format, &end, 10) : 0;
    if (value)
        *format = end;
    return value;
}

/* Read the conversion behind a '%', and move past it; false at the end of the format. */
static bool next_conversion(const char **format, struct conversion *c)
{
    const char *f = *format;
    *c = (struct conversion){.is_assigned = true, .size = sizeof(int)};
    c->width = number(&f);
    if (*f == '$') {
        c->position = c->width;
        f++;
        c->width = 0;
    }
    for (; *f && strchr("*'I", *f); f++)
        if (*f == '*')
            c->is_assigned = false;
    if (!c->width)
        c->width = number(&f);
    bool is_wide = false, is_long = false;
    for (; *f && strchr("mhlLqjzt", *f); f++)
        switch (*f) {
        case 'm':
            c->is_allocated = true;
            break;
        case 'h':
            c->size /= 2;
            break;
        case 'L':
            is_long = true;
            /* fallthrough */
        default:
            c->size = 8;
            is_wide = true;
        }
    c->letter = *f;
    switch (*f) {
    case '\0':
        return false;
    case 'S':
    case 'C':
        c->letter = *f == 'S' ? 's' : 'c';
        is_wide = true;
        break;
    case 'p':
        c->size = sizeof(void *);
        break;
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (is_long)
            c->size = sizeof(long double);
        break;
    case '[':
        f += f[1] == '^' ? 2 : 1;
        f = *f ? strchr(f + 1, ']') : NULL; /* a first ']' is a member of the set */
        if (!f)
            return false;
        c->letter = 's';
        break;
    case '%':
        c->is_assigned = false;
        break;
    }
    if (strchr("sc", c->letter))
        c->size = is_wide ? sizeof(wchar_t) : 1;
    *format = f + 1;
    return true;
}

static void announce_conversion(const struct conversion *c, void *p)
{
    if (!in_arena(p))
        return;
    if (c->letter == 'p' && !c->is_allocated)
        announce_pointer(p);
    else if (c->is_allocated)
        announce(p, sizeof(void *));
    else if (c->letter == 'c')
        announce(p, (c->width ? c->width : 1) * c->size);
    else if (c->letter == 's' && c->size > 1)
        announce(p, (wcslen(p) + 1) * c->size);
    else if (c->letter == 's')
        announce(p, strlen(p) + 1);
    else
        announce(p, c->size);
}

/*
 * Announce the first conversion that was not counted. "%ms" has stored NULL. "%ls" has stored the
 * characters before a byte that is no character, without an end. For these at most a page is assumed.
 */
static void announce_failed(const struct conversion *c, void *p)
{
    enum { PAGE = 4096 };
    if (c->is_allocated)
        announce_lines(p, sizeof(void *));
    else if (c->letter == 's' && c->size > 1)
        announce_lines(p, c->width ? c->width * c->size : PAGE);
}

/*
 * Announce the `count` assigned conversions. If a "%c" meets the end of the input, it has written some
 * characters without being counted. "%n" is never counted.
 */
static int scanned(const char *format, va_list list, int count)
{
    va_list in_order;
    va_copy(in_order, list);
    int left = count < 0 ? 0 : count;
    bool is_over = false;
    struct conversion c;
    while (!is_over && (format = strchr(format, '%'))) {
        format++;
        if (!next_conversion(&format, &c))
            break;
        if (!c.is_assigned)
            continue;
        void *p = NULL;
        if (c.position) {
            va_list from_start;
            va_copy(from_start, list);
            for (size_t i = 0; i < c.position; i++)
                p = va_arg(from_start, void *);
            va_end(from_start);
        } else {
            p = va_arg(in_order, void *);
        }
        is_over = left == 0 && c.letter != 'n';
        if (!is_over || c.letter == 'c')
            announce_conversion(&c, p);
        else
            announce_failed(&c, p);
        left -= c.letter != 'n';
    }
    va_end(in_order);
    return count;
}

#define SCAN_LIST(name, parameters, call)                                                          \
    EXPORT int pm__##name parameters;                                                              \
    EXPORT int pm__##name parameters                                                               \
    {                                                                                              \
        va_list again;                                                                             \
        va_copy(again, list);                                                                      \
        int count = scanned(format, again, call);                                                  \
        va_end(again);                                                                             \
        return count;                                                                              \
    }

#define SCAN(name, parameters, call)                                                               \
    EXPORT int pm__##name parameters;                                                              \
    EXPORT int pm__##name parameters                                                               \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, format);                                                                    \
        int count = call;                                                                          \
        va_end(list);                                                                              \
        return count;                                                                              \
    }

/* Three sets: the functions of ISO C99, those that _GNU_SOURCE asked for before glibc 2.38, and those
 * since then. */
#define SCAN_ALL(prefix)                                                                           \
    SCAN_LIST(prefix##vscanf, (const char *format, va_list list), prefix##vscanf(format, list))    \
    SCAN_LIST(prefix##vfscanf, (FILE * f, const char *format, va_list list),                       \
              prefix##vfscanf(f, format, list))                                                    \
    SCAN_LIST(prefix##vsscanf, (const char *s, const char *format, va_list list),                  \
              prefix##vsscanf(s, format, list))                                                    \
    SCAN(prefix##scanf, (const char *format, ...), pm__##prefix##vscanf(format, list))             \
    SCAN(prefix##fscanf, (FILE * f, const char *format, ...),                                      \
         pm__##prefix##vfscanf(f, format, list))                                                   \
    SCAN(prefix##sscanf, (const char *s, const char *format, ...),                                 \
         pm__##prefix##vsscanf(s, format, list))

SCAN_ALL(__isoc99_)
SCAN_ALL(__isoc23_)
SCAN_ALL()
