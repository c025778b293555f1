/*
 * The functions that code compiled by `pmcc --discover` calls besides marks (base/marks.h). Its dynamic
 * memory comes from here, and here it lists its variables and functions.
 *
 *   allocation   These functions replace libc's functions of the same name, with the same results, errno
 *                and null arguments. The pass redirects the calls (allocations.def). Thread-safe, not
 *                async-signal-safe.
 *   roots        Tables of variables and functions (base/roots.h).
 *   threads      A thread begins in a frame that a walk of its stack recognises.
 *
 * The caller must free this memory with pm__free(). Code compiled otherwise may use free(), because the
 * program's free() is ours too (interpose.c).
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

/* Stores to *result as compiled code would: if `result` is in the arena, the store is marked, as a
 * pointer. */
int pm__posix_memalign(void **result, size_t alignment, size_t size);

/* These functions take memory of this heap, of a container, and of libc's malloc(). Memory stays with the
 * allocator that it came from. */
void *pm__realloc(void *p, size_t size);
void *pm__reallocarray(void *p, size_t count, size_t size);
void pm__free(void *p);
size_t pm__malloc_usable_size(void *p);

/* ---- functions of libc on top of it: heap_libc.c --------------------------------------------- */

void *pm__valloc(size_t size);
char *pm__strdup(const char *s);
char *pm__strndup(const char *s, size_t n);
wchar_t *pm__wcsdup(const wchar_t *s);
int pm__asprintf(char **result, const char *format, ...);
int pm__vasprintf(char **result, const char *format, va_list list);
ssize_t pm__getline(char **line, size_t *size, FILE *file);
ssize_t pm__getdelim(char **line, size_t *size, int end, FILE *file);

/* ---- threads: thread.c, thread_entry.S ------------------------------------------------------- */

/* As pthread_create(). The thread begins in a frame that a walk of its stack recognises. */
int pm__pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                       void *argument);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
