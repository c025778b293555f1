/*
 * What tells libpm of the variables and functions of one program or shared object. It is in each that
 * `pmcc --discover` has linked, from libpm_discover.a: the names of the tables' ends are hidden.
 */
#include "runtime/heap.h"

#include <stdlib.h>

/* The linker's, for sections of such names. Weak: there may be none. */
#define TABLE_END extern __attribute__((weak, visibility("hidden")))
TABLE_END const struct pm__global __start_pm_globals[], __stop_pm_globals[];
TABLE_END const struct pm__local __start_pm_locals[], __stop_pm_locals[];
TABLE_END const struct pm__function __start_pm_functions[], __stop_pm_functions[];

static const struct pm__roots roots = {
    __start_pm_globals, __stop_pm_globals,    __start_pm_locals,
    __stop_pm_locals,   __start_pm_functions, __stop_pm_functions,
};

/* Each object file that the pass has made refers to this, so none is linked without. */
__attribute__((
    visibility("hidden"))) extern const char pm__registered__link_with_libpm_discover_or_use_pmcc;
const char pm__registered__link_with_libpm_discover_or_use_pmcc = 0;

/* So that interpose.c comes along. */
__attribute__((used)) static void (*const interposed)(void *) = free;

/* 101: before and after what the program's own do, which may allocate and commit. */
__attribute__((constructor(101))) static void begin(void)
{
    pm__register(&roots);
}

__attribute__((destructor(101))) static void end(void)
{
    pm__unregister(&roots);
}
