#define _GNU_SOURCE /* RTLD_NEXT */
#include "pmemobj/written.h"

#include "log/nvm.h"

#include <dlfcn.h>
#include <libpmem.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 64 };

static uint64_t lines;

uint64_t pmemobj_written(void)
{
    return lines * LINE;
}

static void count(const void *start, size_t bytes)
{
    const uintptr_t at = (uintptr_t)start;
    if (bytes > 0)
        lines += (at + bytes - 1) / LINE - at / LINE + 1;
    if (nvm_store)
        nvm_store(start, bytes);
}

static void fence(void)
{
    if (nvm_fence)
        nvm_fence();
}

static void count_copy(const void *start, size_t bytes, unsigned flags)
{
    if (!(flags & PMEM_F_MEM_NOFLUSH)) /* else a flush of its own follows */
        count(start, bytes);
    if (!(flags & (PMEM_F_MEM_NOFLUSH | PMEM_F_MEM_NODRAIN)))
        fence();
}

static void *libpmem(const char *name)
{
    void *const function = dlsym(RTLD_NEXT, name);
    if (!function) {
        fprintf(stderr, "libpmem has no %s\n", name);
        exit(1);
    }
    return function;
}

/* Calls libpmem's function of the same name; it is looked up once. */
#define FORWARD(name, ...)                       \
    static __typeof__(name) *forward;            \
    if (!forward)                                \
        *(void **)&forward = libpmem(#name);     \
    return forward(__VA_ARGS__)

void pmem_flush(const void *start, size_t bytes)
{
    count(start, bytes);
    FORWARD(pmem_flush, start, bytes);
}

void pmem_drain(void)
{
    fence();
    FORWARD(pmem_drain);
}

void pmem_persist(const void *start, size_t bytes)
{
    count(start, bytes);
    fence();
    FORWARD(pmem_persist, start, bytes);
}

int pmem_msync(const void *start, size_t bytes)
{
    count(start, bytes);
    fence();
    FORWARD(pmem_msync, start, bytes);
}

void *pmem_memcpy(void *to, const void *from, size_t bytes, unsigned flags)
{
    count_copy(to, bytes, flags);
    FORWARD(pmem_memcpy, to, from, bytes, flags);
}

void *pmem_memmove(void *to, const void *from, size_t bytes, unsigned flags)
{
    count_copy(to, bytes, flags);
    FORWARD(pmem_memmove, to, from, bytes, flags);
}

void *pmem_memset(void *to, int value, size_t bytes, unsigned flags)
{
    count_copy(to, bytes, flags);
    FORWARD(pmem_memset, to, value, bytes, flags);
}
