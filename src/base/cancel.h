/*
 * Cancellation, pthread_cancel(3). A thread that ended by it with a lock held, or with work half done,
 * would take every other thread along. It has two types, and so there are two macros; each holds
 * until the end of the block.
 *
 *   DEFER_CANCELLATION;   at each door of the library: public functions, the allocation of compiled
 *                         code, whatever a mark or a page fault takes a lock for. A thread that can
 *                         be cancelled at any instruction can not until it has left.
 *   UNCANCELLED;          around what may be a cancellation point, as waiting for the disk is. A
 *                         cancellation is held back altogether.
 *
 * Where both are needed DEFER_CANCELLATION is the outer one: a pending cancellation of a thread of
 * asynchronous type acts when either ends, and would act at the inner end, with locks held.
 *
 * DEFER_CANCELLATION costs some 20 instructions and none of them is locked, unless the thread's type is
 * asynchronous; nothing at all while the process has one thread, since there is no other to cancel
 * it. The SIGSEGV handler may use both.
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
 * So wait here until no signal is under way, or end here: nothing is held yet.
 */
void cancel_settle(void);

/* The type that there was. Without cancel_settle(). */
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
