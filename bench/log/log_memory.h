/* What the log engine has in memory and in its file. pm_stats() does not tell. */
#ifndef BENCH_LOG_MEMORY_H
#define BENCH_LOG_MEMORY_H

#include <libpm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct log_memory {
    double map;    /* bytes in memory of the map, of its deltas, and of the bits for left lines */
    double chunks; /* bytes of the chunks that have live words */
    double live;   /* bytes of these words */
};

/** 0, or -1 with errno. */
int log_memory_of(const pm_container *c, struct log_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
