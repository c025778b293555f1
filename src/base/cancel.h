/*
 * Cancellation, pthread_cancel(3): waiting for the disk is where a thread ends by it, and here that is
 * done with locks held and work half done. So whoever calls what may be a cancellation point declares
 *
 *     UNCANCELLED;
 *
 * and until the end of the block a cancellation waits. Some nanoseconds; the SIGSEGV handler may, too.
 */
#ifndef PM_BASE_CANCEL_H
#define PM_BASE_CANCEL_H

#include <pthread.h>

static inline int cancel_disable(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_restore(const int *before)
{
    pthread_setcancelstate(*before, NULL);
}

#define UNCANCELLED                                                                                \
    __attribute__((cleanup(cancel_restore), unused)) int cancel_state = cancel_disable()

#endif
