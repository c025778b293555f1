/*
 * A store may wait for libpm's lock, and must leave errno alone, also where futex(2) returns at once because the
 * lock's state has changed.
 */
#include "base/lock.h"

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>

static struct lock lock;
static _Atomic int waits;

long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    (void)number;
    waits++;
    errno = EAGAIN;
    return -1;
}

static void *wait_for_it(void *nothing)
{
    errno = 1234;
    lock_acquire(&lock);
    assert(errno == 1234);
    lock_release(&lock);
    assert(errno == 1234);
    return nothing;
}

int main(void)
{
    pthread_t other;
    lock_acquire(&lock);
    assert(pthread_create(&other, NULL, wait_for_it, NULL) == 0);
    while (waits < 10)
        ;
    lock_release(&lock);
    assert(pthread_join(other, NULL) == 0);
}
