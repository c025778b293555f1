/*
 * The program's own free() and similar functions. libc, and libraries that pmcc has not compiled, may get
 * memory of libpm and free it. All such memory is in the arena. Other memory goes to the functions that
 * these ones hide: those of libc, or of another allocator (LD_PRELOAD, -ljemalloc).
 *
 * They hide the functions of libraries. They are weak, so the program's own free() replaces them.
 *
 * malloc() is not replaced: memory that such code allocates itself stays foreign.
 *
 * The hidden functions are looked up before main(), so that no free() waits for the dynamic linker's lock. A
 * constructor of a library may call free() earlier, and then looks them up itself.
 */
#define _GNU_SOURCE
#include "base/marks.h"
#include "runtime/heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

/* register.c refers to it. */
extern __attribute__((visibility("hidden"))) const char pm__interposed;
const char pm__interposed = 0;

static _Atomic(void (*)(void *)) hidden_free;
static _Atomic(void *(*)(void *, size_t)) hidden_realloc;
static _Atomic(size_t (*)(void *)) hidden_usable_size;

/* True while this thread looks functions up. The dynamic linker may call free() meanwhile, for the message of
 * an earlier error. With this model the variable needs no memory of its own. */
static __thread bool is_looking __attribute__((tls_model("initial-exec")));

static bool is_ours(const void *p)
{
    return (uintptr_t)p - ARENA_HINT < ARENA_SIZE;
}

/* False if this thread is looking already. */
__attribute__((constructor(101))) static bool look_up_all(void)
{
    if (is_looking)
        return false;
    int saved = errno;
    is_looking = true;
    hidden_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    hidden_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    hidden_usable_size = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    is_looking = false;
    errno = saved;
    return true;
}

/* If the hidden functions are not known yet, the dynamic linker's message keeps its memory. */
__attribute__((weak)) void free(void *p)
{
    if (is_ours(p))
        pm__free(p);
    else if (hidden_free || look_up_all())
        hidden_free(p);
}

__attribute__((weak)) void *realloc(void *p, size_t size)
{
    if (is_ours(p))
        return pm__realloc(p, size);
    if (hidden_realloc || look_up_all())
        return hidden_realloc(p, size);
    errno = ENOMEM;
    return NULL;
}

__attribute__((weak)) size_t malloc_usable_size(void *p)
{
    if (is_ours(p))
        return pm__malloc_usable_size(p);
    return hidden_usable_size || look_up_all() ? hidden_usable_size(p) : 0;
}
