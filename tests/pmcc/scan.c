/* The scanf family: eighteen functions, and all that a format may say. */
#define _GNU_SOURCE
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* glibc takes some of these or their namesakes without a prefix, as a program is compiled. */
int __isoc99_scanf(const char *, ...);
int __isoc99_fscanf(FILE *, const char *, ...);
int __isoc99_sscanf(const char *, const char *, ...);
int __isoc99_vscanf(const char *, va_list);
int __isoc99_vfscanf(FILE *, const char *, va_list);
int __isoc99_vsscanf(const char *, const char *, va_list);
int __isoc23_scanf(const char *, ...);
int __isoc23_fscanf(FILE *, const char *, ...);
int __isoc23_sscanf(const char *, const char *, ...);
int __isoc23_vscanf(const char *, va_list);
int __isoc23_vfscanf(FILE *, const char *, va_list);
int __isoc23_vsscanf(const char *, const char *, va_list);

SUBJECT(uses_scanf)
{
    int volatile got =
        sscanf("12 word 3.5 abcdefgh 77 left over", "%d %s %lf %4c%4c %hhd%n %*s %ms", (int *)m,
               m + 128, (double *)(m + 256), m + 384, m + 512, (signed char *)(m + 640),
               (int *)(m + 768), (char **)(m + 896));
    if (got == 7)
        free(*(char **)(m + 896));
    char line[256];
    snprintf(line, sizeof line, "%s", text_of(n + 1));
    sscanf(line, "%[x]", m + 1024);
    sscanf("5 6", "%2$d %1$d", (int *)(m + 2048), (int *)(m + 2200));
    memset(line, 'c', 150);
    line[150] = '\0';
    sscanf(line, "%150c", m + 2400);                /* more than a line */
    sscanf("a\xff", "%2lc", (wchar_t *)(m + 2688)); /* stores one, and counts none */
    sscanf("abc", "%3c%d", m + 3000, (int *)(m + 3100));
    sscanf("", "%d", (int *)(m + 3200));
    sscanf("7 8", "%n%d %d", (int *)(m + 3300), (int *)(m + 3400), (int *)(m + 3500));
}

static FILE *stream_of(const char *text)
{
    FILE *stream = fmemopen((void *)text, strlen(text), "r");
    require(stream != NULL);
    return stream;
}

static void read_list(int (*read)(const char *, va_list), const char *format, ...)
{
    va_list list;
    va_start(list, format);
    read(format, list);
    va_end(list);
}

static void read_list_from(int (*read)(FILE *, const char *, va_list), FILE *stream,
                           const char *format, ...)
{
    va_list list;
    va_start(list, format);
    read(stream, format, list);
    va_end(list);
}

static void read_list_of(int (*read)(const char *, const char *, va_list), const char *text,
                         const char *format, ...)
{
    va_list list;
    va_start(list, format);
    read(text, format, list);
    va_end(list);
}

SUBJECT(uses_all_functions_of_scanf)
{
    FILE *input = stdin, *other = stream_of("1 2 3 4 5 6");
    stdin = stream_of("1 2 3 4 5 6");
    CALL(scanf)("%d", (int *)m);
    CALL(__isoc99_scanf)("%d", (int *)(m + 128));
    read_list(vscanf, "%d", (int *)(m + 256));
    read_list(__isoc99_vscanf, "%d", (int *)(m + 384));
    CALL(__isoc23_scanf)("%d", (int *)(m + 1536));
    read_list(__isoc23_vscanf, "%d", (int *)(m + 1664));
    fclose(stdin);
    stdin = input;
    CALL(fscanf)(other, "%d", (int *)(m + 512));
    CALL(__isoc99_fscanf)(other, "%d", (int *)(m + 640));
    read_list_from(vfscanf, other, "%d", (int *)(m + 768));
    read_list_from(__isoc99_vfscanf, other, "%d", (int *)(m + 896));
    CALL(__isoc23_fscanf)(other, "%d", (int *)(m + 1792));
    read_list_from(__isoc23_vfscanf, other, "%d", (int *)(m + 1920));
    fclose(other);
    CALL(sscanf)("1", "%d", (int *)(m + 1024));
    CALL(__isoc99_sscanf)("1", "%d", (int *)(m + 1152));
    read_list_of(vsscanf, "1", "%d", (int *)(m + 1280));
    read_list_of(__isoc99_vsscanf, "1", "%d", (int *)(m + 1408));
    CALL(__isoc23_sscanf)("1", "%d", (int *)(m + 2048));
    read_list_of(__isoc23_vsscanf, "1", "%d", (int *)(m + 2176));
}

/* Six conversions of `text`, each with a place of its own. (The compiler does not know this for a
 * scanf, and so accepts odd formats.) */
static void scan(const char *text, const char *format, char *m)
{
    CALL(sscanf)(text, format, m, m + 128, m + 256, m + 384, m + 512, m + 640);
}

SUBJECT(uses_integers)
{
    scan("1 2 3 4 5 6", "%hd %ld %llu %jd %zd %td", m);
    scan("0x7 8 9 10 11 12", "%p %qd %Lu %i %x %Id", m + 1024);
}

SUBJECT(uses_real_numbers)
{
    scan("1 2 3 4 5 6", "%e %lE %Lf %a %lG %LA", m);
    scan("1 2 3", "%f %F %lg", m + 1024);
}

SUBJECT(uses_texts)
{
    scan("one two six a b c", "%ls %S %3c %lc %C %c", m);
    scan("abc]def -ghi 7%8", "%[^]]%[]d-f] %[^g]ghi %d%%%d", m + 1024);
}

/* What comes after a format's last conversion is not assigned. */
SUBJECT(uses_a_set_with_a_percent_sign)
{
    char line[200] = "]% ";
    memset(line + 3, 'x', 150);
    sscanf(line, "%[]%]%s", m + 1024, m + 1100);
}

SUBJECT(uses_formats_that_end_early)
{
    scan("1 2", "%d %", m);
    scan("1 2", "%d %[", m + 1024);
    scan("1 2", "%d %[^", m + 2048);
    scan("1 2", "%d %[]2", m + 3072);
}

/* A text that is not there is NULL; one that breaks off has no end. */
SUBJECT_MORE(uses_conversions_that_fail)
{
    scan("12", "%d %ms", m);
    scan("12 a", "%d %m[0-9]", m + 1024);
    scan("", "%5mc", m + 2048);
    commit();
    scan("1 some text \xff", "%d %l[a-z \xff]", m);
    scan("1 text\xff", "%d %9ls", m + 5000);
}
