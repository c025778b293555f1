/* The one signal handler of this library. */
#ifndef PM_TXN_FAULT_H
#define PM_TXN_FAULT_H

#include <stdbool.h>

/*
 * Make sure that SIGSEGV and SIGBUS come to us first; whoever had them gets what is not ours. Call
 * at open and at commit: a program may have replaced our handler. Costs one system call when it has
 * not. Thread-safe. -1 with a message, which names `path`.
 */
int fault_install(const char *path);

/*
 * Nothing may be opened outside such a pair: a fork(2) waits for its end, so that a child knows
 * every descriptor that it must close. The first call registers that with the process.
 * -1 with a message, which names `path`.
 */
int fault_begin_open(const char *path);
void fault_end_open(void);

/* Whether this is a child of fork(2), where libpm is switched off. */
bool fault_in_child(void);

/* Registers the arena with the fault source, once; 0 or -errno. See dispatch_*.c. */
int dispatch_start(void);

/* Hands a faulting address to its container; true if the access may be tried again. [handler] */
bool dispatch(void *address);

/* What dispatch() arrives at, whatever the source. [handler] */
bool fault_serve(void *address);

#endif
