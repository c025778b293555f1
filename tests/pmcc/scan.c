/* The scanf and wscanf families: eighteen functions each, and all that a format may say. */
#define _GNU_SOURCE
#include "text.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
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

int __isoc99_wscanf(const wchar_t *, ...);
int __isoc99_fwscanf(FILE *, const wchar_t *, ...);
int __isoc99_swscanf(const wchar_t *, const wchar_t *, ...);
int __isoc99_vwscanf(const wchar_t *, va_list);
int __isoc99_vfwscanf(FILE *, const wchar_t *, va_list);
int __isoc99_vswscanf(const wchar_t *, const wchar_t *, va_list);
int __isoc23_wscanf(const wchar_t *, ...);
int __isoc23_fwscanf(FILE *, const wchar_t *, ...);
int __isoc23_swscanf(const wchar_t *, const wchar_t *, ...);
int __isoc23_vwscanf(const wchar_t *, va_list);
int __isoc23_vfwscanf(FILE *, const wchar_t *, va_list);
int __isoc23_vswscanf(const wchar_t *, const wchar_t *, va_list);

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

/* Functions that call one of the `v` forms with their arguments. */
#define READ_LISTS(name, character)                                                                \
    static void name(int (*read)(const character *, va_list), const character *format, ...)        \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, format);                                                                    \
        read(format, list);                                                                        \
        va_end(list);                                                                              \
    }                                                                                              \
    static void name##_from(int (*read)(FILE *, const character *, va_list), FILE *stream,         \
                            const character *format, ...)                                          \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, format);                                                                    \
        read(stream, format, list);                                                                \
        va_end(list);                                                                              \
    }                                                                                              \
    static void name##_of(int (*read)(const character *, const character *, va_list),              \
                          const character *text, const character *format, ...)                     \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, format);                                                                    \
        read(text, format, list);                                                                  \
        va_end(list);                                                                              \
    }

READ_LISTS(read_list, char)
READ_LISTS(read_wide_list, wchar_t)

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

/* Without what the headers make of them. */
int plain_wscanf(const wchar_t *, ...) __asm__("wscanf");
int plain_fwscanf(FILE *, const wchar_t *, ...) __asm__("fwscanf");
int plain_swscanf(const wchar_t *, const wchar_t *, ...) __asm__("swscanf");
int plain_vwscanf(const wchar_t *, va_list) __asm__("vwscanf");
int plain_vfwscanf(FILE *, const wchar_t *, va_list) __asm__("vfwscanf");
int plain_vswscanf(const wchar_t *, const wchar_t *, va_list) __asm__("vswscanf");

/* fmemopen() has no wide streams. */
static FILE *wide_stream_of(const char *text)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    FILE *stream = fdopen(fd, "r");
    require(stream != NULL);
    rewind(stream);
    return stream;
}

SUBJECT(uses_all_functions_of_wscanf)
{
    FILE *input = stdin, *other = wide_stream_of("1 2 3 4 5 6");
    stdin = wide_stream_of("1 2 3 4 5 6");
    CALL(plain_wscanf)(L"%d", (int *)m);
    CALL(__isoc99_wscanf)(L"%d", (int *)(m + 128));
    read_wide_list(plain_vwscanf, L"%d", (int *)(m + 256));
    read_wide_list(__isoc99_vwscanf, L"%d", (int *)(m + 384));
    CALL(__isoc23_wscanf)(L"%d", (int *)(m + 1536));
    read_wide_list(__isoc23_vwscanf, L"%d", (int *)(m + 1664));
    fclose(stdin);
    stdin = input;
    CALL(plain_fwscanf)(other, L"%d", (int *)(m + 512));
    CALL(__isoc99_fwscanf)(other, L"%d", (int *)(m + 640));
    read_wide_list_from(plain_vfwscanf, other, L"%d", (int *)(m + 768));
    read_wide_list_from(__isoc99_vfwscanf, other, L"%d", (int *)(m + 896));
    CALL(__isoc23_fwscanf)(other, L"%d", (int *)(m + 1792));
    read_wide_list_from(__isoc23_vfwscanf, other, L"%d", (int *)(m + 1920));
    fclose(other);
    CALL(plain_swscanf)(L"1", L"%d", (int *)(m + 1024));
    CALL(__isoc99_swscanf)(L"1", L"%d", (int *)(m + 1152));
    read_wide_list_of(plain_vswscanf, L"1", L"%d", (int *)(m + 1280));
    read_wide_list_of(__isoc99_vswscanf, L"1", L"%d", (int *)(m + 1408));
    CALL(__isoc23_swscanf)(L"1", L"%d", (int *)(m + 2048));
    read_wide_list_of(__isoc23_vswscanf, L"1", L"%d", (int *)(m + 2176));
}

/* As scan(), for wide characters. */
static void scan_wide(const wchar_t *text, const wchar_t *format, char *m)
{
    CALL(swscanf)(text, format, m, m + 128, m + 256, m + 384, m + 512, m + 640);
}

/* U+016D is an 'm' with one more bit. */
SUBJECT(uses_wide_formats)
{
    scan_wide(L"1 2 3 4 5 6", L"%hd %*d %Lf %n%d %09d", m);
    scan_wide(L"5 6", L"%2$d %1$d", m + 700);
    scan_wide(L"abc]def -ghi \u016d8", L"%l[^]]%*l[]d-f] %l[^g]ghi \u016d%d", m + 1024);
    scan_wide(L"1 \u016d2", L"%d %*l[\u016d]%d", m + 2048);
    scan_wide(L"1 2", L"%d %l[^", m + 3072);
    scan_wide(L"1 2", L"%d %", m + 4096);
}

/* Wide characters become bytes, each up to three here. */
SUBJECT_MORE(uses_wide_texts)
{
    wchar_t text[51];
    wmemset(text, L'\u20ac', 50);
    text[50] = L'\0';
    require(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
    require(CALL(swscanf)(text, L"%50c", m) == 1);
    require(CALL(swscanf)(text, L"%s", m + 1000) == 1);
    require(CALL(swscanf)(text, L"%l[\u20ac]", m + 2000) == 1);
    require(CALL(swscanf)(text, L"%50lc", m + 3000) == 1);
    CALL(swscanf)(text, L"%60c", m + 4000); /* stores 50, and counts none */
    setlocale(LC_CTYPE, "C");
    wmemset(text, L'a', 40); /* the locale "C" has no other character of the text */
    commit();
    require(CALL(swscanf)(text, L"%s", m + 5000) <= 0);
    CALL(swscanf)(text, L"%45s", m + 6000);
}
