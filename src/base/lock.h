/*
 * A mutex that the handler of SIGSEGV and SIGBUS may take: no allocation, no thread-local state, one futex.
 *
 * Two rules hold for code that takes the lock outside the handler:
 *  1. While it holds the lock it must not access a page of a container's view that may fault: the
 *     handler would wait for its own thread. Pages that are open do not fault.
 *  2. It must block signals while it holds the lock, wherever a signal handler of the program may
 *     legally store to a container. The same is true if the signal handler may load from a container
 *     whose pages are translated as they are touched.
 *
 * It knows its owner, for memory that is not there yet (backend/absent.c) may be accessed at any time. The
 * handler takes the lock then, unless its thread has it.
 *
 * Releasing the lock is an atomic exchange. On x86 the exchange also orders this thread's earlier
 * write-backs: they are fenced before another thread can begin the next round.
 *
 * While the process has one thread no instruction is locked. Only its own signal handlers could take
 * the lock meanwhile, and they release it before they return. A locked instruction after a round would
 * wait, as long as a fence, for stores that nobody needs yet.
 *
 * States and algorithm: Drepper, "Futexes Are Tricky", mutex 2.
 */
#ifndef PM_BASE_LOCK_H
#define PM_BASE_LOCK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/single_threaded.h>

struct lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held and somebody may be waiting */
    void *_Atomic owner;    /* the thread that holds it, as libc addresses it; NULL: none does */
};

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);

static inline void lock_acquire(struct lock *lock)
{
    uint32_t expected = 0;
    if (__libc_single_threaded && atomic_load_explicit(&lock->state, memory_order_relaxed) == 0)
        atomic_store_explicit(&lock->state, 1, memory_order_relaxed);
    else if (!atomic_compare_exchange_strong(&lock->state, &expected, 1))
        lock_wait(lock);
    atomic_store_explicit(&lock->owner, __builtin_thread_pointer(), memory_order_relaxed);
}

/* Whether this thread holds the lock. */
static inline bool lock_is_ours(struct lock *lock)
{
    return atomic_load_explicit(&lock->owner, memory_order_relaxed) == __builtin_thread_pointer();
}

static inline void lock_release(struct lock *lock)
{
    atomic_store_explicit(&lock->owner, NULL, memory_order_relaxed);
    if (__libc_single_threaded)
        atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
    else if (atomic_exchange(&lock->state, 0) == 2)
        lock_wake(lock);
}

/* The same with all signals blocked but SIGBUS, which an access to memory may raise; `*saved` is for the
 * release. Costs two more system calls. */
void lock_acquire_masked(struct lock *lock, sigset_t *saved);
void lock_release_masked(struct lock *lock, const sigset_t *saved);

#endif
