#include "system/foreign.h"

void foreign_store(volatile uint64_t *to, uint64_t value)
{
    *to = value;
}
