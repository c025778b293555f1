/* Functions of libc that write to where their arguments point: strings, memory, numbers. */
#define _GNU_SOURCE
#include "text.h"

#include <iconv.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <regex.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uchar.h>
#include <unistd.h>
#include <wchar.h>

SUBJECT(uses_strcpy)
{
    strcpy(m + 5, text_of(n));
}
SUBJECT(uses_stpcpy)
{
    *stpcpy(m + 5, text_of(n)) = '!';
}
SUBJECT(uses_strncpy)
{
    strncpy(m + 30, text_of(n / 2), n);
}
SUBJECT(uses_stpncpy)
{
    stpncpy(m + 30, text_of(n / 2), n);
}
SUBJECT_MORE(uses_strcat)
{
    m[0] = 0;
    strcat(m, text_of(n));
    commit();
    strncat(m, text_of(n), 50);
    commit();
    strcat(m, "the end, at last, of a long text: ");
}
SUBJECT(uses_wide)
{
    wchar_t wide[101];
    wmemset(wide, L'w', n);
    wide[n] = 0;
    wcscpy((wchar_t *)m, wide);
    wmemset((wchar_t *)(m + 2000), L'v', n);
    wcsncpy((wchar_t *)(m + 4000), wide, n);
    wmemcpy((wchar_t *)(m + 6000), wide, n);
    wmemmove((wchar_t *)(m + 8000), wide, n);
}
SUBJECT_MORE(uses_more_wide)
{
    wchar_t *text = (wchar_t *)m;
    wcscpy(text, L"begin");
    commit();
    wcscat(text, L", and go on for more than a line of memory");
    commit();
    wcsncat(text, L", and go on for more than a line of memory", n);
    wcpcpy((wchar_t *)(m + 2000), L"end");
    wcpncpy((wchar_t *)(m + 4000), text, n);
    wmempcpy((wchar_t *)(m + 6000), text, 4);
    swprintf((wchar_t *)(m + 8000), 200, L"%ld", n);
    swprintf((wchar_t *)(m + 9000), 20, L"%99ld", n);
    wcsxfrm((wchar_t *)(m + 10000), L"text", 20);
}
SUBJECT(uses_memory)
{
    const char *text = text_of(n);
    CALL(memcpy)(m, text, n);
    *(char *)mempcpy(m + 1000, text, n) = 'e';
    memccpy(m + 2000, "abcdefghi", 'd', 9);
    memccpy(m + 2496 - 3, "abcdefghi", 'd', 9); /* the last one is on a line of its own */
    explicit_bzero(m + 3000, n);
    CALL(memmove)(m + 4000, text, n);
    CALL(memset)(m + 5000, 's', n);
    CALL(bzero)(m + 6000, n);
    CALL(bcopy)(text, m + 7000, n);
    swab(text, m + 8000, n);
}
/* What lies elsewhere is not marked. */
SUBJECT(uses_memory_elsewhere)
{
    char elsewhere[128] = "";
    CALL(memccpy)(elsewhere, "abcdefghi", 'd', 9);
    CALL(strcpy)(elsewhere, text_of(n));
    CALL(strncat)(elsewhere, "abc", 3);
    CALL(sprintf)(elsewhere, "%ld", n);
    int number;
    CALL(sscanf)(elsewhere, "%d", &number);
    m[0] = (char)number;
}
SUBJECT(uses_sprintf)
{
    sprintf(m + 9, "%ld %s", n, text_of(n));
    snprintf(m + 1000, n, "%s and much more than there is room for", text_of(n / 2));
    snprintf(m + 2000, 4000, "%s", text_of(n));
}
static void print_list(char *m, long n, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    vsprintf(m, format, list);
    vsnprintf(m + 1000, n, format, again);
    va_end(again);
    va_end(list);
}
SUBJECT(uses_lists_of_arguments)
{
    print_list(m + 9, n, "%ld %s", n, text_of(n));
}
/* As _POSIX_C_SOURCE has it. */
int __xpg_strerror_r(int, char *, size_t);

SUBJECT_MORE(uses_more_texts)
{
    strxfrm(m, text_of(n), 200);
    char *volatile message = strerror_r(99999, m + 1000, 100);
    require(message == m + 1000);
    require(__xpg_strerror_r(1, m + 2000, 100) == 0);
    memfrob(m + 3000, n);
}
static void print_wide_list(wchar_t *m, const wchar_t *format, ...)
{
    va_list list;
    va_start(list, format);
    vswprintf(m, 200, format, list);
    va_end(list);
}
SUBJECT(uses_wide_lists_of_arguments)
{
    print_wide_list((wchar_t *)m, L"%ld", n);
}
SUBJECT_MORE(uses_tokens)
{
    strcpy(m, "one two  three four");
    strcpy(m + 100, "1,2,,3");
    commit();
    for (char *word = strtok(m, " "); word; word = strtok(NULL, " "))
        word[0] = '#';
    commit();
    char **rest = (char **)(m + 1024);
    *rest = m + 100;
    while (strsep(rest, ",")) {
    }
    strcpy(m + 200, "  a b ");
    commit();
    strtok_r(m + 200, " ", rest);
    commit();
    strtok_r(NULL, " ", rest);
    strtok_r(NULL, " ", rest);
}
SUBJECT_MORE(uses_wide_tokens)
{
    wchar_t *text = (wchar_t *)m, **rest = (wchar_t **)(m + 1024);
    wcscpy(text, L"  one two");
    commit();
    require(wcstok(text, L" ", rest) == text + 2);
    commit();
    require(wcstok(NULL, L" ", rest) == text + 6);
    wcstok(NULL, L" ", rest);
}
SUBJECT_MORE(uses_conversions_of_texts)
{
    wchar_t wide[101];
    mbstate_t *state = (mbstate_t *)(m + 5000);
    memset(state, 0, sizeof *state);
    require(mbstowcs((wchar_t *)m, text_of(n), 200) == (size_t)n);
    require(mbstowcs(wide, text_of(n), 101) == (size_t)n);
    require(wcstombs(m + 1000, wide, 200) == (size_t)n);
    require(mbtowc((wchar_t *)(m + 2000), "x", 1) == 1);
    require(wctomb(m + 2500, L'x') == 1);
    require(mbrtowc((wchar_t *)(m + 3000), "x", 1, state) == 1);
    require(wcrtomb(m + 4000, L'x', state) == 1);
    commit();
    require(mbstowcs((wchar_t *)(m + 6000), text_of(n), n) == (size_t)n);
    require(wcstombs(m + 7000, wide, n) == (size_t)n);
}
/* These move a pointer along the text, to NULL at its end. */
SUBJECT_MORE(uses_conversions_of_parts)
{
    wchar_t wide[101];
    const char **from = (const char **)m;
    const wchar_t **wide_from = (const wchar_t **)(m + 128);
    mbstate_t *state = (mbstate_t *)(m + 256);
    require(mbstowcs(wide, text_of(n), 101) == (size_t)n);
    memset(state, 0, sizeof *state);
    *from = text_of(n);
    *wide_from = wide;
    commit();
    require(mbsrtowcs((wchar_t *)(m + 1000), from, 200, state) == (size_t)n && !*from);
    require(wcsrtombs(m + 2000, wide_from, 200, state) == (size_t)n && !*wide_from);
    *from = text_of(n);
    *wide_from = wide;
    commit();
    require(mbsnrtowcs((wchar_t *)(m + 3000), from, n, 200, state) == (size_t)n);
    require(wcsnrtombs(m + 4000, wide_from, n, 200, state) == (size_t)n);
    *from = text_of(n);
    *wide_from = wide;
    commit();
    require(mbsrtowcs((wchar_t *)(m + 5000), from, n, state) == (size_t)n);
    require(wcsrtombs(m + 6000, wide_from, n, state) == (size_t)n);
}
SUBJECT_MORE(uses_conversions_of_characters)
{
    mbstate_t *state = (mbstate_t *)(m + 1000);
    memset(state, 0, sizeof *state);
    require(mbrtoc16((char16_t *)m, "x", 1, state) == 1);
    require(mbrtoc32((char32_t *)(m + 128), "x", 1, state) == 1);
    require(c16rtomb(m + 256, u'x', state) == 1);
    require(c32rtomb(m + 384, U'x', state) == 1);
}
/* The first bytes of a character are in the state. */
SUBJECT_MORE(uses_a_state_between_calls)
{
    mbstate_t *state = (mbstate_t *)m;
    memset(state, 0, sizeof *state);
    require(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
    commit();
    require(CALL(mbrlen)("\xc3", 1, state) == (size_t)-2);
    setlocale(LC_CTYPE, "C");
}
SUBJECT_MORE(uses_iconv)
{
    char text[] = "some text";
    char **from = (char **)m, **to = (char **)(m + 256);
    size_t *left = (size_t *)(m + 128), *room = (size_t *)(m + 384);
    *from = text;
    *left = sizeof text - 1;
    *to = m + 1000;
    *room = 100;
    iconv_t way = iconv_open("UTF-16LE", "UTF-8");
    commit();
    require(iconv(way, from, left, to, room) == 0);
    require(*left == 0 && *room == 100 - 2 * (sizeof text - 1));
    require(iconv(way, NULL, NULL, NULL, NULL) == 0);
    iconv_close(way);
}
SUBJECT_MORE(uses_regular_expressions)
{
    regex_t e;
    require(regcomp(&e, "(x)(x)*|y", REG_EXTENDED) == 0);
    char text[110] = "ab";
    strcat(strcat(text, text_of(n)), "y");
    require(regexec(&e, text, 20, (regmatch_t *)m, 0) == 0);
    require(regerror(REG_ESPACE, &e, m + 1000, 100) > 1);
    regfree(&e);
    /* it does not look at the array */
    require(regcomp(&e, "y", REG_NOSUB) == 0);
    require(regexec(&e, text, SIZE_MAX, (regmatch_t *)(m + 2000), 0) == 0);
    regfree(&e);
}
SUBJECT(uses_numbers)
{
    strtol("123", (char **)m, 10);
    strtod("1.5e3", (char **)(m + 128));
    frexp((double)n + 0.5, (int *)(m + 256));
    modf((double)n + 0.25, (double *)(m + 384));
    strtoll("123", (char **)(m + 512), 10);
    strtoul("123", (char **)(m + 640), 10);
    strtoull("123", (char **)(m + 768), 10);
    strtof("1.5e3", (char **)(m + 896));
    frexpf((float)n + 0.5f, (int *)(m + 1024));
    modff((float)n + 0.25f, (float *)(m + 1152));
}
SUBJECT(uses_more_numbers)
{
    strtoimax("123", (char **)m, 10);
    strtoumax("123", (char **)(m + 128), 10);
    strtoq("123", (char **)(m + 256), 10);
    strtouq("123", (char **)(m + 384), 10);
    strtold("1.5e3", (char **)(m + 640));
    wcstol(L"123", (wchar_t **)(m + 768), 10);
    wcstoul(L"123", (wchar_t **)(m + 896), 10);
    wcstoll(L"123", (wchar_t **)(m + 1024), 10);
    wcstoull(L"123", (wchar_t **)(m + 1152), 10);
    wcstod(L"1.5e3", (wchar_t **)(m + 1280));
    wcstof(L"1.5e3", (wchar_t **)(m + 1408));
    wcstold(L"1.5e3", (wchar_t **)(m + 1664));
    wcstoimax(L"123", (wchar_t **)(m + 2048), 10);
    wcstoumax(L"123", (wchar_t **)(m + 2176), 10);
    frexpl((long double)n + 0.5L, (int *)(m + 1792));
    modfl((long double)n + 0.25L, (long double *)(m + 1920));
}
/* As programs call them that are compiled with the headers of glibc 2.38. */
long __isoc23_strtol(const char *, char **, int);
long long __isoc23_strtoll(const char *, char **, int);
unsigned long __isoc23_strtoul(const char *, char **, int);
unsigned long long __isoc23_strtoull(const char *, char **, int);
intmax_t __isoc23_strtoimax(const char *, char **, int);
uintmax_t __isoc23_strtoumax(const char *, char **, int);
long __isoc23_wcstol(const wchar_t *, wchar_t **, int);
long long __isoc23_wcstoll(const wchar_t *, wchar_t **, int);
unsigned long __isoc23_wcstoul(const wchar_t *, wchar_t **, int);
unsigned long long __isoc23_wcstoull(const wchar_t *, wchar_t **, int);
intmax_t __isoc23_wcstoimax(const wchar_t *, wchar_t **, int);
uintmax_t __isoc23_wcstoumax(const wchar_t *, wchar_t **, int);

SUBJECT(uses_numbers_of_c23)
{
    require(__isoc23_strtol("-123", (char **)m, 10) == -123);
    require(__isoc23_strtoll("-123", (char **)(m + 128), 10) == -123);
    require(__isoc23_strtoul("123", (char **)(m + 256), 10) == 123);
    require(__isoc23_strtoull("123", (char **)(m + 384), 10) == 123);
    require(__isoc23_strtoimax("-123", (char **)(m + 512), 10) == -123);
    require(__isoc23_strtoumax("123", (char **)(m + 640), 10) == 123);
    require(__isoc23_wcstol(L"-123", (wchar_t **)(m + 768), 10) == -123);
    require(__isoc23_wcstoll(L"-123", (wchar_t **)(m + 896), 10) == -123);
    require(__isoc23_wcstoul(L"123", (wchar_t **)(m + 1024), 10) == 123);
    require(__isoc23_wcstoull(L"123", (wchar_t **)(m + 1152), 10) == 123);
    require(__isoc23_wcstoimax(L"-123", (wchar_t **)(m + 1280), 10) == -123);
    require(__isoc23_wcstoumax(L"123", (wchar_t **)(m + 1408), 10) == 123);
}
SUBJECT(uses_random_numbers)
{
    rand_r((unsigned *)m);
    erand48((unsigned short *)(m + 128));
    nrand48((unsigned short *)(m + 256));
    jrand48((unsigned short *)(m + 384));
}

SUBJECT_MORE(uses_random_numbers_of_a_state)
{
    struct random_data *data = (struct random_data *)m;
    char *state = m + 1000;
    memset(data, 0, sizeof *data);
    commit();
    require(initstate_r((unsigned)n, state, 256, data) == 0);
    commit();
    for (int i = 0; i < 5; i++)
        require(random_r(data, (int32_t *)(m + 128)) == 0);
    commit();
    require(srandom_r((unsigned)n + 1, data) == 0);
    commit();
    require(initstate_r((unsigned)n, m + 2000, 8, data) == 0); /* one number */
    commit();
    require(random_r(data, (int32_t *)(m + 256)) == 0);
    commit();
    require(setstate_r(state, data) == 0);
}
SUBJECT_MORE(uses_random_numbers_of_48_bits)
{
    struct drand48_data *data = (struct drand48_data *)m;
    unsigned short seed[7] = {(unsigned short)n, 2, 3, 4, 5, 6, 7};
    require(srand48_r(n, data) == 0);
    commit();
    require(drand48_r(data, (double *)(m + 128)) == 0);
    commit();
    require(lrand48_r(data, (long *)(m + 256)) == 0);
    commit();
    require(mrand48_r(data, (long *)(m + 384)) == 0);
    commit();
    require(seed48_r(seed, data) == 0);
    commit();
    require(lcong48_r(seed, data) == 0);
    commit();
    require(erand48_r((unsigned short *)(m + 512), data, (double *)(m + 640)) == 0);
    require(nrand48_r((unsigned short *)(m + 768), data, (long *)(m + 896)) == 0);
    require(jrand48_r((unsigned short *)(m + 1024), data, (long *)(m + 1152)) == 0);
}
/* These are in libm. */
SUBJECT(uses_mathematics)
{
    sincos((double)n + 1.5, (double *)m, (double *)(m + 128));
    sincosf((float)n + 1.5f, (float *)(m + 256), (float *)(m + 384));
    sincosl((long double)n + 1.5L, (long double *)(m + 512), (long double *)(m + 640));
    lgamma_r(-0.5 - (double)(n % 2), (int *)(m + 768));
    lgammaf_r(-0.5f - (float)(n % 2), (int *)(m + 896));
    lgammal_r(-0.5L - (long double)(n % 2), (int *)(m + 1024));
    remquo((double)n + 17, 2.5, (int *)(m + 1152));
    remquof((float)n + 17, 2.5f, (int *)(m + 1280));
    remquol((long double)n + 17, 2.5L, (int *)(m + 1408));
}

/* No instruction stores these at once. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Watomic-alignment"
struct large {
    long word[12];
};
SUBJECT_MORE(uses_large_atomic_objects)
{
    struct large *object = (struct large *)m, *copy = (struct large *)(m + 256), value;
    for (int i = 0; i < 12; i++)
        value.word[i] = n * 1000 + i;
    __atomic_store(object, &value, __ATOMIC_SEQ_CST);
    __atomic_load(object, copy, __ATOMIC_SEQ_CST);
    commit();
    value.word[0]--;
    __atomic_exchange(object, &value, copy + 2, __ATOMIC_SEQ_CST);
    commit();
    require(
        !__atomic_compare_exchange(object, copy, &value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    commit();
    value.word[11]--;
    require(__atomic_compare_exchange(object, copy, &value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}
#pragma clang diagnostic pop

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(int));
}
static int compare_more(const void *a, const void *b, void *compared)
{
    ++*(long *)compared;
    return compare(a, b);
}
static void shuffle(int *numbers, long n)
{
    for (long i = 0; i < n; i++)
        numbers[i] = (int)(i * 7919 % 101);
}
static int is_first;
static int commit_and_compare(const void *a, const void *b)
{
    if (is_first)
        commit();
    is_first = 0;
    return compare(a, b);
}
SUBJECT_MORE(uses_qsort_that_commits)
{
    shuffle((int *)m, n);
    commit();
    is_first = 1;
    qsort(m, n, sizeof(int), commit_and_compare);
}
SUBJECT_MORE(uses_qsort)
{
    shuffle((int *)m, n);
    shuffle((int *)(m + 1000), n);
    commit();
    qsort(m, n, sizeof(int), compare);
    qsort_r(m + 1000, n, sizeof(int), compare_more, m + 2000);
}
/* The second key is there already. */
SUBJECT_MORE(uses_lsearch)
{
    int key = (int)n;
    size_t *count = (size_t *)(m + 1000);
    *count = 0;
    commit();
    require(lsearch(&key, m, count, sizeof key, compare) == m && *count == 1);
    require(lsearch(&key, m, count, sizeof key, compare) == m && *count == 1);
    commit();
    is_first = 1;
    key++;
    require(lsearch(&key, m, count, sizeof key, commit_and_compare) == m + sizeof key);
}
