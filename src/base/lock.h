/*
 * A mutex that the SIGSEGV handler may take: no allocation, no thread-local state, one futex.
 *
 * Rule: whoever takes it outside the handler must not touch a container's view while holding it,
 * for that may fault and the handler would wait for its own thread; and must hold it with signals
 * blocked wherever a signal handler of the program may legally store to a container, or load from
 * one whose pages are made right as they are touched.
 *
 * Releasing it is an atomic exchange, which on x86 also orders this thread's earlier write-backs:
 * what one thread wrote back is fenced before another thread can begin the next round.
 *
 * While the process has one thread no instruction is locked: there is nobody to exclude but its own
 * signal handlers, which release what they acquire before they return; and a locked instruction
 * after a round would wait for stores that nobody needs yet, as long as a fence.
 *
 * States and algorithm: Drepper, "Futexes Are Tricky", mutex 2.
 */
#ifndef PM_BASE_LOCK_H
#define PM_BASE_LOCK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/single_threaded.h>

struct lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held and somebody may be waiting */
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
}

static inline void lock_release(struct lock *lock)
{
    if (__libc_single_threaded)
        atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
    else if (atomic_exchange(&lock->state, 0) == 2)
        lock_wake(lock);
}

/* The same with all signals blocked; `*saved` is for the release. Two system calls more. */
void lock_acquire_masked(struct lock *lock, sigset_t *saved);
void lock_release_masked(struct lock *lock, const sigset_t *saved);

/*
 * Have children of fork(2) find the lock free: it is taken before a fork, and released on both sides.
 * From a constructor: a thread that opens a container holds a lock which is also taken before a fork,
 * and may want this one; and what is registered first is called last.
 */
void lock_over_forks(struct lock *lock);

#endif
