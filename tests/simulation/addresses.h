/* Others at the addresses that a container's pointers mean. */
#ifndef TESTS_SIMULATION_ADDRESSES_H
#define TESTS_SIMULATION_ADDRESSES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A bit that follows from what recoveries the container at `path` has seen. */
bool addresses_are_odd(const char *path);

/* Take the addresses that the closed container at `path` is for, and those that its pointers are on
 * their way to. Nothing if there is no file. */
void take_addresses_of(const char *path);

void give_addresses_back(void);

#ifdef __cplusplus
}
#endif
#endif
