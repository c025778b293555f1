#include "base/marks.h"

#include <stdatomic.h>

static _Atomic int compiled;

void pm__compiled(void)
{
    atomic_store_explicit(&compiled, 1, memory_order_relaxed);
}

int marks_are_made(void)
{
    return atomic_load_explicit(&compiled, memory_order_relaxed);
}
