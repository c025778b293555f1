/* The one signal handler of this library. */
#ifndef PM_PAGES_FAULT_H
#define PM_PAGES_FAULT_H

#include <stdbool.h>

/*
 * Make sure that SIGSEGV and SIGBUS come to our handler first. It passes signals that are not ours to the
 * handler that was there before. Call it at open and at commit, because a program may have replaced our
 * handler. It costs one system call if the program has not. Thread-safe. -1 with a message that names
 * `path`.
 */
int fault_install(const char *path);

/*
 * Open descriptors only between fault_begin_open() and fault_end_open(). A fork(2) waits for the end:
 * then the child knows every descriptor to close. The first call registers the fork handlers with the
 * process. -1 with a message that names `path`.
 */
int fault_begin_open(const char *path);
void fault_end_open(void);

/* True in a child of fork(2), where libpm is switched off. */
bool fault_in_child(void);

/* Registers the arena with the fault source, once; 0 or -errno. See dispatch_*.c. */
int dispatch_start(void);

/* Hands a faulting address to its container; true if the access may be tried again. [handler] */
bool dispatch(void *address);

/* dispatch() calls this, whatever the fault source. [handler] */
bool fault_serve(void *address);

#endif
