/* What is not compiled by pmcc. */
#include "discover.h"

long number(long n)
{
    return n;
}

void *pointer(void *p)
{
    return p;
}
