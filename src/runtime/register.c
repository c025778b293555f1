/*
 * Tells libpm about the variables and functions of one program or shared object. `pmcc --discover` links
 * this file into each of them, from libpm_discover.a. Each has its own copy, because the names of the
 * tables' ends are hidden.
 */
#include "runtime/heap.h"

/* The linker defines these names for the sections. Weak, because there may be no such section. */
#define TABLE_END extern __attribute__((weak, visibility("hidden")))
TABLE_END const struct pm__global __start_pm_globals[], __stop_pm_globals[];
TABLE_END const struct pm__local __start_pm_locals[], __stop_pm_locals[];
TABLE_END const struct pm__function __start_pm_functions[], __stop_pm_functions[];

static const struct pm__roots roots = {
    __start_pm_globals, __stop_pm_globals,    __start_pm_locals,
    __stop_pm_locals,   __start_pm_functions, __stop_pm_functions,
};

/* Each object file that the pass has made refers to this symbol. So it cannot be linked without this
 * file. */
__attribute__((
    visibility("hidden"))) extern const char pm__registered__link_with_libpm_discover_or_use_pmcc;
const char pm__registered__link_with_libpm_discover_or_use_pmcc = 0;

/* This reference makes the linker take interpose.c too, even if a library has a free() of its own. */
extern __attribute__((visibility("hidden"))) const char pm__interposed;
__attribute__((used)) static const char *const interposed = &pm__interposed;

/* 101: before the program's constructors and after its destructors, because these may allocate and
 * commit. */
__attribute__((constructor(101))) static void begin(void)
{
    pm__register(&roots);
}

__attribute__((destructor(101))) static void end(void)
{
    pm__unregister(&roots);
}
