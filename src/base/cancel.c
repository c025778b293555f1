/* Lets a cancellation that is under way act before a call begins, when no lock is held. */
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
