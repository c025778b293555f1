/*
 * Error reporting. errno says the kind. A message per thread says what failed, where, and what to do.
 *
 * Code that may run inside the SIGSEGV handler must not format text. Such functions return a
 * negative errno value, and their caller in normal context turns it into a message.
 */
#ifndef PM_BASE_ERROR_H
#define PM_BASE_ERROR_H

#include <stdint.h>

/* Record the message, set errno to `error`, return -1. */
int pm__fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/*
 * The same for a call of the system or the C library that failed with `error`. The message is
 * "WHAT: reason", and the remedy if one is known. The format gives WHAT.
 */
#define pm__fail_system(error, ...) pm__fail_because(error, NULL, __VA_ARGS__)

/* The same if the caller knows a better reason and remedy; if `reason` is NULL, the system's. */
int pm__fail_because(int error, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#define pm__fail_null(...) (pm__fail(__VA_ARGS__), NULL)

/* The same about a place in a file. The message is "PATH: offset N: WHAT", and the format gives WHAT. */
int pm__fail_at(const char *path, uint64_t offset, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
int pm__fail_because_at(const char *path, uint64_t offset, int error, const char *reason,
                        const char *format, ...) __attribute__((format(printf, 5, 6), cold));
#define pm__fail_system_at(path, offset, error, ...)                                               \
    pm__fail_because_at(path, offset, error, NULL, __VA_ARGS__)
#define pm__fail_null_at(...) (pm__fail_at(__VA_ARGS__), NULL)

/* The remedy for an error of the system, as the end of a message; empty if none is known.
 * Async-signal-safe. */
const char *pm__remedy(int error);

const char *pm__message(void);

/* Make text from a file fit for a message: a forged file must not send commands to a terminal. */
void pm__make_printable(char *text);

/* Print the message on stderr. */
void pm__warn(void);

#endif
