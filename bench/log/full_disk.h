/* A disk on which a container's file cannot be longer than so many bytes. setrlimit(2) would not do: home is a file
 * in memory, and may have to be longer. Programs are linked with --wrap=file_allocate. */
#ifndef BENCH_FULL_DISK_H
#define BENCH_FULL_DISK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void full_disk(uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
