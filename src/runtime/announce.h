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

/* As pm__mark_range(), pm__mark_data() and pm__mark_copy(), but of what may have been stored already. */
void runtime_announce_range(const void *address, size_t size);
void runtime_announce_data(const void *address, size_t size);
void runtime_announce_copy(const void *address, const void *from, size_t size);

static inline bool in_arena(const volatile void *p)
{
    return (uintptr_t)p - ARENA_HINT < ARENA_SIZE;
}

/* Whether a value may lead into the arena, or into a module that is not always at the same addresses
 * (llvm-pass/emit.cc has the same). */
static inline bool may_be_address(const void *value)
{
    return ((uintptr_t)value >> 44) - 1 < 7;
}

/* The kind of a marked word in the arena, as compiled code says it. */
static inline void set_kind(const void *word, uint8_t kind)
{
    if (*mark_of(word) & MARK_KINDS)
        *kinds_of(word) = kind;
}

/* What may be written, before it is known how much will be: no kinds are told. */
static inline void announce_lines(const volatile void *p, size_t n)
{
    if (in_arena(p) && n)
        runtime_announce_range((const void *)p, n);
}

/* Data, whatever was there. */
static inline void announce(const volatile void *p, size_t n)
{
    if (in_arena(p) && n)
        runtime_announce_data((const void *)p, n);
}

/* A copy of what is at `from`, before it is made. */
static inline void announce_copy(void *p, const void *from, size_t n)
{
    if (in_arena(p) && n)
        runtime_announce_copy(p, from, n);
}

/* A pointer that the function stores: as if copied from a variable of the function's. */
static inline void announce_pointer(char **p)
{
    announce_copy(p, &p, sizeof *p);
}

#define announce_object(p) announce(p, sizeof *(p))

#endif
