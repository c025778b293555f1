/*
 * How the wrappers of libc's functions announce the bytes that a function writes. Outside the arena it
 * costs four instructions. A null pointer is outside.
 *
 * If a function of libc stores to a page that is not open yet, the store faults, like any store. So a
 * wrapper may also announce after the call, when it knows what was written. This is as good, except that
 * the page is then compared whole.
 */
#ifndef PM_RUNTIME_ANNOUNCE_H
#define PM_RUNTIME_ANNOUNCE_H

#include "base/marks.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

/* As pm__mark_range(), pm__mark_data() and pm__mark_copy(), for bytes that may have been stored already. */
void runtime_announce_range(const void *address, size_t size);
void runtime_announce_data(const void *address, size_t size);
void runtime_announce_copy(const void *address, const void *from, size_t size);

static inline bool in_arena(const volatile void *p)
{
    return (uintptr_t)p - ARENA_HINT < ARENA_SIZE;
}

/* True if a value may lead into the arena, or into a module whose address may change (llvm-pass/emit.cc
 * has the same test). */
static inline bool may_be_address(const void *value)
{
    return ((uintptr_t)value >> 44) - 1 < 7;
}

/* Set the kind of a marked word in the arena, as compiled code does. */
static inline void set_kind(const void *word, uint8_t kind)
{
    if (*mark_of(word) & MARK_KINDS)
        *kinds_of(word) = kind;
}

/* Announce bytes that may be written, before their number is known. It tells no kinds. */
static inline void announce_lines(const volatile void *p, size_t n)
{
    if (in_arena(p) && n)
        runtime_announce_range((const void *)p, n);
}

/* Announce data, whatever was there before. */
static inline void announce(const volatile void *p, size_t n)
{
    if (in_arena(p) && n)
        runtime_announce_data((const void *)p, n);
}

/* Announce a copy of the bytes at `from`, before it is made. */
static inline void announce_copy(void *p, const void *from, size_t n)
{
    if (in_arena(p) && n)
        runtime_announce_copy(p, from, n);
}

/* Announce a pointer that the function stores, as if it were copied from a variable of the function. */
static inline void announce_pointer(char **p)
{
    announce_copy(p, &p, sizeof *p);
}

#define announce_object(p) announce(p, sizeof *(p))

#endif
