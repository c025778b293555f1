/* The allocator's view, for C++, which cannot include the library's private headers. */
#ifndef TESTS_SIMULATION_OBJECTS_H
#define TESTS_SIMULATION_OBJECTS_H

#include <libpm.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Visit every object in use, in order of address. */
void walk_objects(pm_container *c, void (*visit)(void *context, uint64_t address, uint64_t size),
                  void *context);

#ifdef __cplusplus
}
#endif
#endif
