/* What glibc has since 2.38, where it is older: the same as without the prefix. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#if !__GLIBC_PREREQ(2, 38)

#define STRTO(result, name, character)                                                             \
    result __isoc23_##name(const character *, character **, int);                                  \
    result __isoc23_##name(const character *s, character **end, int base)                          \
    {                                                                                              \
        return name(s, end, base);                                                                 \
    }
STRTO(long, strtol, char)
STRTO(long long, strtoll, char)
STRTO(unsigned long, strtoul, char)
STRTO(unsigned long long, strtoull, char)
STRTO(intmax_t, strtoimax, char)
STRTO(uintmax_t, strtoumax, char)
STRTO(long, wcstol, wchar_t)
STRTO(long long, wcstoll, wchar_t)
STRTO(unsigned long, wcstoul, wchar_t)
STRTO(unsigned long long, wcstoull, wchar_t)
STRTO(intmax_t, wcstoimax, wchar_t)
STRTO(uintmax_t, wcstoumax, wchar_t)

#define SCAN(scanf, character)                                                                     \
    int __isoc23_v##scanf(const character *, va_list);                                             \
    int __isoc23_v##scanf(const character *format, va_list list)                                   \
    {                                                                                              \
        return v##scanf(format, list);                                                             \
    }                                                                                              \
    int __isoc23_vf##scanf(FILE *, const character *, va_list);                                    \
    int __isoc23_vf##scanf(FILE *f, const character *format, va_list list)                         \
    {                                                                                              \
        return vf##scanf(f, format, list);                                                         \
    }                                                                                              \
    int __isoc23_vs##scanf(const character *, const character *, va_list);                         \
    int __isoc23_vs##scanf(const character *s, const character *format, va_list list)              \
    {                                                                                              \
        return vs##scanf(s, format, list);                                                         \
    }
SCAN(scanf, char)
SCAN(wscanf, wchar_t)

#endif
