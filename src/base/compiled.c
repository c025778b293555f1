/*
 * Counts the programs and shared objects that pmcc has compiled: each tells when it is loaded and
 * unloaded. PM_TRACKER_STORES without one would commit nothing.
 */
#include "base/marks.h"

#include <stdatomic.h>

/* Programs and shared objects with marks that are loaded now. */
static _Atomic int compiled;

void pm__compiled(void)
{
    atomic_fetch_add_explicit(&compiled, 1, memory_order_relaxed);
}

void pm__compiled_gone(void)
{
    atomic_fetch_sub_explicit(&compiled, 1, memory_order_relaxed);
}

int marks_are_made(void)
{
    return atomic_load_explicit(&compiled, memory_order_relaxed) > 0;
}
