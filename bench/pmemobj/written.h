/*
 * How many bytes libpmemobj sends to the medium. It does not tell, but it does so by functions of libpmem. A program
 * that is linked with written.c has functions of these names, which count, and call libpmem's. That costs a
 * few nanoseconds for each call. So programs that are timed are linked without it.
 */
#ifndef BENCH_PMEMOBJ_WRITTEN_H
#define BENCH_PMEMOBJ_WRITTEN_H

#include <stdint.h>

/** Bytes of all lines that were written back, or copied past the cache. Null in programs that do not count. */
__attribute__((weak)) uint64_t pmemobj_written(void);

#endif
