/*
 * The headers of glibc 2.38 or later make programs call these functions instead of strtol(), similar
 * functions, and the scanf families. This happens to programs compiled for C23, or for all that glibc has.
 * The functions are weak, because libpm may be built and run with an older glibc. Then no program calls
 * them.
 */
#ifndef PM_RUNTIME_ISOC23_H
#define PM_RUNTIME_ISOC23_H

/* Include this before everything else. Then the wrappers of the plain functions call the plain functions,
 * and the headers do not redirect them. */
#include <features.h>
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL /* the same, since glibc 2.40 */
#define __GLIBC_USE_C23_STRTOL 0

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

#define WEAK __attribute__((weak))

WEAK long __isoc23_strtol(const char *, char **, int);
WEAK long long __isoc23_strtoll(const char *, char **, int);
WEAK unsigned long __isoc23_strtoul(const char *, char **, int);
WEAK unsigned long long __isoc23_strtoull(const char *, char **, int);
WEAK intmax_t __isoc23_strtoimax(const char *, char **, int);
WEAK uintmax_t __isoc23_strtoumax(const char *, char **, int);
WEAK long __isoc23_wcstol(const wchar_t *, wchar_t **, int);
WEAK long long __isoc23_wcstoll(const wchar_t *, wchar_t **, int);
WEAK unsigned long __isoc23_wcstoul(const wchar_t *, wchar_t **, int);
WEAK unsigned long long __isoc23_wcstoull(const wchar_t *, wchar_t **, int);
WEAK intmax_t __isoc23_wcstoimax(const wchar_t *, wchar_t **, int);
WEAK uintmax_t __isoc23_wcstoumax(const wchar_t *, wchar_t **, int);
WEAK int __isoc23_vscanf(const char *, va_list);
WEAK int __isoc23_vfscanf(FILE *, const char *, va_list);
WEAK int __isoc23_vsscanf(const char *, const char *, va_list);
WEAK int __isoc23_vwscanf(const wchar_t *, va_list);
WEAK int __isoc23_vfwscanf(FILE *, const wchar_t *, va_list);
WEAK int __isoc23_vswscanf(const wchar_t *, const wchar_t *, va_list);

#endif
