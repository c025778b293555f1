/*
 * Describes for a message the memory in which an address of this process lies: a stack, the heap, a
 * module, a file. Slow: it reads /proc. For audits.
 */
#ifndef PM_BASE_MAPS_H
#define PM_BASE_MAPS_H

#include "base/vector.h"

#include <stdbool.h>

struct maps {
    struct vector regions; /* struct region, in order of address */
};

/* Read the process's mappings. -errno if /proc does not tell. Release with maps_free(). */
int maps_read(struct maps *maps);
void maps_free(struct maps *maps);

/* Whether memory at an address could be read when the mappings were read. */
bool maps_have(const struct maps *maps, uint64_t address);

#define MAPS_TEXT 128 /* bytes, the NUL included */

/* Describe the memory at an address that maps_have(). */
void maps_describe(const struct maps *maps, uint64_t address, char text[MAPS_TEXT]);

#endif
