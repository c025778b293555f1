/*
 * Wrappers of the scanf and wscanf families. They announce the assigned values after the call. For this they
 * read the format once more: numbers have the size of their length modifier, strings the length that they
 * have now.
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
int __isoc99_vwscanf(const wchar_t *, va_list);
int __isoc99_vfwscanf(FILE *, const wchar_t *, va_list);
int __isoc99_vswscanf(const wchar_t *, const wchar_t *, va_list);

struct format {
    const void *at; /* the next character */
    size_t size;    /* of a character: that of char or of wchar_t */
};

struct conversion {
    char letter;
    bool is_assigned, is_allocated;
    bool is_converted; /* between bytes and wide characters */
    size_t size;     /* bytes of a number, or of a character */
    size_t most;     /* bytes of the longest character */
    size_t width;    /* 0: none given */
    size_t position; /* of "%3$d"; 0: none given */
};

/* The next character, 0 at the end. All characters that are not ASCII are one. */
static char peek(const struct format *f)
{
    wchar_t c = f->size == 1 ? *(const char *)f->at : *(const wchar_t *)f->at;
    return (char)(c >= 0 && c <= SCHAR_MAX ? c : SCHAR_MIN);
}

static void advance(struct format *f)
{
    f->at = (const char *)f->at + f->size;
}

static bool is_among(char c, const char *set)
{
    return c && strchr(set, c);
}

/* Move past the next `c`; false if there is none. */
static bool skip_past(struct format *f, char c)
{
    for (; peek(f); advance(f))
        if (peek(f) == c) {
            advance(f);
            return true;
        }
    return false;
}

/* Read a number, 0 if none, and move past it. */
static size_t number(struct format *f)
{
    size_t value = 0;
    for (; peek(f) >= '0' && peek(f) <= '9'; advance(f))
        value = value * 10 + (size_t)(peek(f) - '0');
    return value;
}

/* Move past a set, "[...]"; false at the end of the format. */
static bool skip_set(struct format *f)
{
    advance(f);
    if (peek(f) == '^')
        advance(f);
    if (!peek(f))
        return false;
    advance(f); /* a first ']' is a member of the set */
    return skip_past(f, ']');
}

/* Read the conversion behind a '%', and move past it; false at the end of the format. */
static bool next_conversion(struct format *f, struct conversion *c)
{
    *c = (struct conversion){.is_assigned = true, .size = sizeof(int)};
    c->width = number(f);
    if (peek(f) == '$') {
        c->position = c->width;
        advance(f);
        c->width = 0;
    }
    for (; is_among(peek(f), "*'I"); advance(f))
        if (peek(f) == '*')
            c->is_assigned = false;
    if (!c->width)
        c->width = number(f);
    bool is_wide = false, is_long = false, is_set = false;
    for (; is_among(peek(f), "mhlLqjzt"); advance(f))
        switch (peek(f)) {
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
    c->letter = peek(f);
    switch (c->letter) {
    case '\0':
        return false;
    case 'S':
    case 'C':
        c->letter = c->letter == 'S' ? 's' : 'c';
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
        c->letter = 's';
        is_set = true;
        break;
    case '%':
        c->is_assigned = false;
        break;
    }
    if (is_among(c->letter, "sc")) {
        c->size = is_wide ? sizeof(wchar_t) : 1;
        c->is_converted = c->size != f->size;
        c->most = c->is_converted && !is_wide ? MB_CUR_MAX : c->size;
    }
    if (is_set)
        return skip_set(f);
    advance(f);
    return true;
}

/* The bytes of `count` characters at p. A byte that begins no character counts as one. */
static size_t bytes_of_characters(const char *p, size_t count)
{
    mbstate_t state = {0};
    size_t bytes = 0;
    for (; count > 0; count--) {
        size_t length = mbrlen(p + bytes, MB_CUR_MAX, &state);
        bool is_character = length > 0 && length <= MB_CUR_MAX;
        bytes += is_character ? length : 1;
        if (!is_character)
            state = (mbstate_t){0};
    }
    return bytes;
}

static void announce_characters(const struct conversion *c, void *p)
{
    size_t count = c->width ? c->width : 1;
    if (c->most > c->size) {
        announce_lines(p, count * c->most);
        announce(p, bytes_of_characters(p, count));
    } else {
        announce(p, count * c->size);
    }
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
        announce_characters(c, p);
    else if (c->letter == 's' && c->size > 1)
        announce(p, (wcslen(p) + 1) * c->size);
    else if (c->letter == 's')
        announce(p, strlen(p) + 1);
    else
        announce(p, c->size);
}

/*
 * Announce the first conversion that was not counted. "%ms" has stored NULL. If a conversion between bytes
 * and wide characters meets a character that cannot be converted, it has stored those before, without an
 * end. For these at most a page is assumed.
 */
static void announce_failed(const struct conversion *c, void *p)
{
    enum { PAGE = 4096 };
    if (c->is_allocated)
        announce_lines(p, sizeof(void *));
    else if (c->letter == 's' && c->is_converted)
        announce_lines(p, c->width ? c->width * c->most : PAGE);
}

/*
 * Announce the `count` assigned conversions. If a "%c" meets the end of the input, it has written some
 * characters without being counted. "%n" is never counted.
 */
static int scanned(struct format format, va_list list, int count)
{
    va_list in_order;
    va_copy(in_order, list);
    int left = count < 0 ? 0 : count;
    bool is_over = false;
    struct conversion c;
    while (!is_over && skip_past(&format, '%')) {
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
        struct format start = {format, sizeof *format};                                            \
        int count = scanned(start, again, call);                                                   \
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

#define SCAN_FAMILY(prefix, scanf, character)                                                      \
    SCAN_LIST(prefix##v##scanf, (const character *format, va_list list),                           \
              prefix##v##scanf(format, list))                                                      \
    SCAN_LIST(prefix##vf##scanf, (FILE * f, const character *format, va_list list),                \
              prefix##vf##scanf(f, format, list))                                                  \
    SCAN_LIST(prefix##vs##scanf, (const character *s, const character *format, va_list list),      \
              prefix##vs##scanf(s, format, list))                                                  \
    SCAN(prefix##scanf, (const character *format, ...), pm__##prefix##v##scanf(format, list))      \
    SCAN(prefix##f##scanf, (FILE * f, const character *format, ...),                               \
         pm__##prefix##vf##scanf(f, format, list))                                                 \
    SCAN(prefix##s##scanf, (const character *s, const character *format, ...),                     \
         pm__##prefix##vs##scanf(s, format, list))

/* Three sets: the functions of ISO C99, those that _GNU_SOURCE asked for before glibc 2.38, and those
 * since then. */
SCAN_FAMILY(__isoc99_, scanf, char)
SCAN_FAMILY(__isoc23_, scanf, char)
SCAN_FAMILY(, scanf, char)
SCAN_FAMILY(__isoc99_, wscanf, wchar_t)
SCAN_FAMILY(__isoc23_, wscanf, wchar_t)
SCAN_FAMILY(, wscanf, wchar_t)
