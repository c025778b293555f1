/* Where the example structures' memory comes from; peer_examples.c is the same for all. */
#ifndef BENCH_STORE_H
#define BENCH_STORE_H

#include <libpm.h>

pm_container *store_open(const char *path);
void store_commit(pm_container *c);
void store_close(pm_container *c);

#endif
