/*
 * What code compiled by `pmcc --discover` calls besides marks (base/marks.h): its dynamic memory
 * comes from here, and here it says where its variables and functions are.
 *
 *   allocation   in the place of libc's functions of the same name: results, errno and null arguments
 *                are as theirs. The pass sends the calls here (allocations.def). Thread-safe,
 *                not async-signal-safe.
 *   roots        tables of variables and functions (base/roots.h)
 *   threads      begin in a frame that whoever walks the stack knows
 *
 * Memory from here is the caller's to free, with pm__free() or, since the program's free() is
 * ours too (interpose.c), with free() in code that was compiled otherwise.
 */
#ifndef PM_RUNTIME_HEAP_H
#define PM_RUNTIME_HEAP_H

#include "base/roots.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <wchar.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- the heap: src/discovery/heap.c ---------------------------------------------------------- */

void *pm__malloc(size_t size);
void *pm__calloc(size_t count, size_t size);
void *pm__aligned_alloc(size_t alignment, size_t size);
void *pm__memalign(size_t alignment, size_t size);

/* Stores to *result as compiled code would: where that is in the arena it is marked, a pointer. */
int pm__posix_memalign(void **result, size_t alignment, size_t size);

/* These take memory of this heap, of a container, and of libc's malloc(); each stays where it is
 * from. */
void *pm__realloc(void *p, size_t size);
void *pm__reallocarray(void *p, size_t count, size_t size);
void pm__free(void *p);
size_t pm__malloc_usable_size(void *p);

/* ---- what libc makes of it: heap_libc.c ------------------------------------------------------ */

void *pm__valloc(size_t size);
char *pm__strdup(const char *s);
char *pm__strndup(const char *s, size_t n);
wchar_t *pm__wcsdup(const wchar_t *s);
int pm__asprintf(char **result, const char *format, ...);
int pm__vasprintf(char **result, const char *format, va_list list);
ssize_t pm__getline(char **line, size_t *size, FILE *file);
ssize_t pm__getdelim(char **line, size_t *size, int end, FILE *file);

/* ---- threads: thread.c, thread_entry.S ------------------------------------------------------- */

/* As pthread_create(). The thread begins in a frame that whoever walks its stack knows. */
int pm__pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                       void *argument);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
