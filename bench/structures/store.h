/* Where the example structures' memory comes from; peer_examples.c is the same for all. */
#ifndef BENCH_STORE_H
#define BENCH_STORE_H

#include "structures/peer.h"

#include <libpm.h>

pm_container *store_open(const char *path);
void store_commit(pm_container *c);
bool store_read_counts(pm_container *c, struct peer_counts *counts);
void store_close(pm_container *c);

#endif
