/* A log on the medium that starts over at its end, for peers that write one by hand. */
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include <stddef.h>

#define RING_LINE  ((size_t)64)
#define RING_BYTES ((size_t)16 << 20)

/* Map the log from the file `path`, which must not exist, with `more` bytes before it, all in memory.
 * Returns the first of these; `*source` gets as many bytes as the log has, not on the medium. */
char *ring_open(const char *path, size_t more, char **source);

/* What a commit is to write: peer_log_bytes in whole lines. */
size_t ring_bytes(void);

/* Copy past the cache, to where the last commit's bytes end; a fence makes it durable. */
void ring_append(const char *from, size_t bytes);

void ring_close(void);

#endif
