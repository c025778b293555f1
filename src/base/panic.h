/* Last words. Async-signal-safe: no formatting library, no allocation, one write(2). */
#ifndef PM_BASE_PANIC_H
#define PM_BASE_PANIC_H

#include <stdint.h>

/* Write "libpm: PATH: offset N: WHAT" to stderr. */
void report(const char *path, uint64_t offset, const char *what);

/* The same, then abort(). For promises that cannot be kept; the last commit stands. An `error` that is not
 * 0 is that of a system call that failed: "(reason)" follows, and the remedy if one is known. */
_Noreturn void panic(const char *path, uint64_t offset, const char *what, int error);

/* Write "libpm: CALL: ADDRESS: WHAT" to stderr, then abort(). For a call that can return no error. */
_Noreturn void panic_address(const char *call, const void *address, const char *what);

#endif
