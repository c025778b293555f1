/*
 * The fault source libsigsegv (GPL-2+). The arena is the one area registered with its dispatcher. It is
 * registered once, before the first container is mapped, because the dispatcher's tree of areas is not
 * synchronised. libsigsegv's own signal handler is not used: it forgets the handler that was there
 * before.
 */
#include "pages/fault.h"

#include "container/container.h"

#include <errno.h>
#include <sigsegv.h>

static sigsegv_dispatcher dispatcher;

static int serve(void *address, void *unused)
{
    (void)unused;
    return fault_serve(address);
}

int dispatch_start(void)
{
    sigsegv_init(&dispatcher);
    return sigsegv_register(&dispatcher, (void *)arena_base, ARENA_SIZE, serve, NULL) ? 0 : -ENOMEM;
}

bool dispatch(void *address)
{
    return sigsegv_dispatch(&dispatcher, address);
}
