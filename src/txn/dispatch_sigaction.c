/* Fault source without any library: there is one area, the arena, and its table has the owners. */
#include "txn/fault.h"

int dispatch_start(void)
{
    return 0;
}

bool dispatch(void *address)
{
    return fault_serve(address);
}
