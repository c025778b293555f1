/*
 * The slow paths of the mutex. A thread that finds the lock held stores state 2, and sleeps in futex(2)
 * until it has changed the state from 0 to 2. Waking one sleeper costs a system call, and only state 2 needs
 * it.
 */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void lock_wait(struct lock *lock)
{
    int saved = errno;
    while (atomic_exchange(&lock->state, 2) != 0)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    errno = saved;
}

void lock_wake(struct lock *lock)
{
    int saved = errno;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

void lock_acquire_masked(struct lock *lock, sigset_t *saved)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, saved);
    lock_acquire(lock);
}

void lock_release_masked(struct lock *lock, const sigset_t *saved)
{
    lock_release(lock);
    pthread_sigmask(SIG_SETMASK, saved, NULL);
}
