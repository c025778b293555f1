/* Last words. Async-signal-safe: no formatting library, no allocation, one write(2). */
#ifndef PM_BASE_PANIC_H
#define PM_BASE_PANIC_H

#include <stdint.h>

/* Write "libpm: PATH: offset N: WHAT" to stderr. */
void report(const char *path, uint64_t offset, const char *what);

/* The same and "(reason)", that of the errno value `error`, then abort(). For promises that cannot
 * be kept; the last commit stands. */
_Noreturn void panic(const char *path, uint64_t offset, const char *what, int error);

#endif
