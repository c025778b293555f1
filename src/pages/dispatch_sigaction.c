/* The fault source that needs no library. It has one area, the arena, whose table knows the owners. */
#include "pages/fault.h"

int dispatch_start(void)
{
    return 0;
}

bool dispatch(void *address)
{
    return fault_serve(address);
}
