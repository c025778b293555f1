#include "base/lock.h"

#include "base/panic.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
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
    pthread_sigmask(SIG_SETMASK, &all, saved);
    lock_acquire(lock);
}

void lock_release_masked(struct lock *lock, const sigset_t *saved)
{
    lock_release(lock);
    pthread_sigmask(SIG_SETMASK, saved, NULL);
}

/* Nobody waits for one of these locks while holding another, so their order does not matter. */
static struct lock *over_forks[2];
static uint32_t over_forks_count;

static void before_fork(void)
{
    for (uint32_t i = 0; i < over_forks_count; i++)
        lock_acquire(over_forks[i]);
}

static void after_fork(void)
{
    for (uint32_t i = 0; i < over_forks_count; i++)
        lock_release(over_forks[i]);
}

void lock_over_forks(struct lock *lock)
{
    assert(over_forks_count < sizeof over_forks / sizeof *over_forks);
    if (over_forks_count == 0 && pthread_atfork(before_fork, after_fork, after_fork) != 0)
        panic_address("pthread_atfork()", lock, /* unreachable: a process that starts has memory */
                      "no memory to watch for fork(); free some, or raise ulimit -v");
    over_forks[over_forks_count++] = lock;
}
