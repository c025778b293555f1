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

int __isoc23_vscanf(const char *, va_list);
int __isoc23_vscanf(const char *format, va_list list)
{
    return vscanf(format, list);
}
int __isoc23_vfscanf(FILE *, const char *, va_list);
int __isoc23_vfscanf(FILE *f, const char *format, va_list list)
{
    return vfscanf(f, format, list);
}
int __isoc23_vsscanf(const char *, const char *, va_list);
int __isoc23_vsscanf(const char *s, const char *format, va_list list)
{
    return vsscanf(s, format, list);
}

#endif
