/*
 * One call of the system or of the C library fails, once or for a while. The linker's --wrap sends the library's calls
 * through failing.c, where those count that are made while the window is open.
 */
#ifndef TEST_PMCC_FAILING_H
#define TEST_PMCC_FAILING_H

#include <stdbool.h>
#include <stdint.h>

/* The name of a call; NULL if there are not so many. */
const char *call_name(unsigned call);

/* Have it fail after so many others of it; `throughout`: and until the window is closed. */
void fail(unsigned call, uint64_t after, bool throughout);

/* Whether calls count from now on. */
void set_window(bool open);

/* Whether one has failed. */
bool has_failed(void);

/* Call a function from one that pmcc has not compiled. */
int foreign_call(int (*function)(void *), void *argument);

#endif
