/*
 * The program's own free() and similar functions. libc, and libraries that pmcc has not compiled, may get
 * memory of libpm and free it. All such memory is in the arena. Other memory goes to libc, or to the
 * program's replacement of malloc().
 *
 * malloc() is not replaced: memory that such code allocates itself stays foreign.
 */
#define _GNU_SOURCE
#include "base/marks.h"
#include "runtime/heap.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

void __libc_free(void *);
void *__libc_realloc(void *, size_t);

static bool is_ours(const void *p)
{
    return (uintptr_t)p - ARENA_HINT < ARENA_SIZE;
}

void free(void *p)
{
    if (is_ours(p))
        pm__free(p);
    else
        __libc_free(p);
}

void *realloc(void *p, size_t size)
{
    return is_ours(p) ? pm__realloc(p, size) : __libc_realloc(p, size);
}

/* libc has no second name for this function. Looking it up may allocate, and the allocation does not ask
 * for sizes. */
size_t malloc_usable_size(void *p)
{
    static _Atomic(size_t (*)(void *)) libc;
    if (is_ours(p))
        return pm__malloc_usable_size(p);
    if (!libc)
        libc = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return libc(p);
}
