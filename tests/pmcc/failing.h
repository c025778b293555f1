/*
 * One call of the system or of the C library fails, once. The linker's --wrap sends the library's calls
 * through failing.c, where those count that are made while the window is open.
 */
#ifndef TEST_PMCC_FAILING_H
#define TEST_PMCC_FAILING_H

#include <stdbool.h>
#include <stdint.h>

/* Have the call of this number fail, after so many others of it. Its name; NULL if there is none. */
const char *fail(unsigned call, uint64_t after);

/* Whether calls count from now on. */
void set_window(bool open);

/* Whether one has failed. */
bool has_failed(void);

#endif
