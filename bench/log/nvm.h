/*
 * A delay that stands in for slow persistent memory: 500 ns for a fence, and 1 GB/s for lines on their way to
 * the medium. Two models of these lines:
 *
 *   stalls   the program waits for them at the next fence.
 *   drains   the medium takes them while the program works. The next fence waits for the rest.
 *
 * A fence behind which no line is on its way costs nothing. One thread.
 */
#ifndef BENCH_NVM_H
#define BENCH_NVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All are null in programs that are linked without nvm.c. */

/** From now on the medium is slow. */
__attribute__((weak)) void nvm_start(bool drains);

/** The peer copies these bytes past the cache, or writes them back. */
__attribute__((weak)) void nvm_store(const void *start, size_t bytes);

/** Wait until all lines on their way are durable. */
__attribute__((weak)) void nvm_fence(void);

#ifdef __cplusplus
}
#endif
#endif
