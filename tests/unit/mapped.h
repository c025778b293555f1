/* What the pointer map of an open container says, for tests: offsets in the file. */
#ifndef TESTS_MAPPED_H
#define TESTS_MAPPED_H

#include <libpm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Call `visit` for each mapped word, in order. */
void walk_pointers(pm_container *c, void (*visit)(void *context, uint64_t offset), void *context);

/* Where an address is in the file. */
uint64_t offset_of(pm_container *c, const void *p);

#ifdef __cplusplus
}
#endif
#endif
