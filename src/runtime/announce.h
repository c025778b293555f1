/*
 * How the wrappers of libc's functions announce what is written. Outside the arena it costs four
 * instructions. A null pointer is outside.
 *
 * A function of libc that has stored to a page not open yet was caught by a page fault, like any
 * store. So what it wrote may also be announced when it is known, after the call: that is as good,
 * except that the page is then compared whole.
 */
#ifndef PM_RUNTIME_ANNOUNCE_H
#define PM_RUNTIME_ANNOUNCE_H

#include "base/marks.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

static inline bool in_arena(const volatile void *p)
{
    return (uintptr_t)p - ARENA_HINT < ARENA_SIZE;
}

static inline void announce(const volatile void *p, size_t n)
{
    if (in_arena(p) && n)
        pm__mark_range((const void *)p, n);
}

#define announce_object(p) announce(p, sizeof *(p))

#endif
