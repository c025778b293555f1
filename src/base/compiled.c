/*
 * Counts the loaded programs and libraries that have marks. The pass gives each of them a constructor and a
 * destructor that call the two functions here. pm_open() asks for the count: PM_TRACKER_STORES makes no
 * sense if no code makes marks.
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
