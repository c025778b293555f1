/*
 * Cancellation, pthread_cancel(3). If cancellation ended a thread that holds a lock, or has work half
 * done, all other threads would stop too. Cancellation has two types, so there are two macros. Each
 * holds until the end of the block.
 *
 *   DEFER_CANCELLATION;   at each entry to the library: public functions, the allocation of compiled
 *                         code, and the slow paths of marks and page faults. A thread that can be
 *                         cancelled at any instruction cannot be cancelled until it has left.
 *   UNCANCELLED;          around a possible cancellation point, for instance waiting for the disk.
 *                         It holds a cancellation back altogether.
 *
 * Where both are needed, DEFER_CANCELLATION must be the outer one. In a thread of asynchronous type a
 * pending cancellation acts when either ends. At the end of an inner one it would act with locks held.
 *
 * DEFER_CANCELLATION costs some 20 instructions. None of them is locked, unless the thread's type is
 * asynchronous. While the process has one thread it costs nothing, since no other thread can cancel the
 * only one. The SIGSEGV handler may use both.
 */
#ifndef PM_BASE_CANCEL_H
#define PM_BASE_CANCEL_H

#include <pthread.h>
#include <sys/single_threaded.h>

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

/*
 * glibc cancels a thread of asynchronous type by a signal. The signal may be under way when the type
 * changes. Then it ends the thread in the next cancellation point, even if cancellation is disabled.
 * So this function waits until no signal is under way, or lets the thread end: it holds nothing yet.
 */
void cancel_settle(void);

/* Returns the previous type. Without cancel_settle(). */
static inline int cancel_defer_type(void)
{
    int before = PTHREAD_CANCEL_DEFERRED;
    if (!__libc_single_threaded)
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
    return before;
}

static inline int cancel_defer(void)
{
    int before = cancel_defer_type();
    if (before == PTHREAD_CANCEL_ASYNCHRONOUS)
        cancel_settle();
    return before;
}

static inline void cancel_undefer(const int *before)
{
    if (*before == PTHREAD_CANCEL_ASYNCHRONOUS)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

#define UNCANCELLED                                                                                \
    __attribute__((cleanup(cancel_restore), unused)) int cancel_state = cancel_disable()

#define DEFER_CANCELLATION                                                                         \
    __attribute__((cleanup(cancel_undefer), unused)) int cancel_type = cancel_defer()

#endif
