/*
 * Settles a cancellation by a write(2) to descriptor -1. The write fails and has no effect. But write(2) is
 * a cancellation point: when it ends, glibc waits for the signal of a cancellation that has begun. It costs
 * one system call.
 */
#include "base/cancel.h"

#include <errno.h>
#include <unistd.h>

/* A cancellation point waits, when it ends, for the signal of a cancellation that has begun. */
void cancel_settle(void)
{
    int saved = errno;
    (void)!write(-1, "", 0);
    errno = saved;
}
