/*
 * Roots: the places outside the heap where code compiled by `pmcc --discover` keeps pointers. The pass
 * makes tables of them in each translation unit. The linker joins the tables, and a constructor
 * registers them once for each program or shared object. Threads and strtok() have further roots.
 * Discovery reads all these; the pass and runtime/ make them.
 */
#ifndef PM_BASE_ROOTS_H
#define PM_BASE_ROOTS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A variable that can hold pointers, and lives as long as its program or shared object. Section
 * pm_globals. */
struct pm__global {
    void *address;
    size_t size; /* bytes */
};

/* A variable of which each thread has its own. Section pm_locals. */
struct pm__local {
    void *(*address)(void); /* the calling thread's */
    size_t size;            /* bytes */
};

/* A function that keeps its frame pointer. A stack walk can find its frame and its caller's frame.
 * Section pm_functions. */
struct pm__function {
    void *start;  /* its unwind information starts here, too */
    size_t flags; /* PM__FUNCTION_* */
};

#define PM__FUNCTION_MAIN ((size_t)1) /* main(): nothing beyond its frame is the program's */

/* The three tables of a program or a shared object. A table without entries may be null, null. */
struct pm__roots {
    const struct pm__global *globals, *globals_end;
    const struct pm__local *locals, *locals_end;
    const struct pm__function *functions, *functions_end;
};

/* A constructor calls pm__register(), before the program's constructors. A destructor calls
 * pm__unregister(), after the program's destructors, when the program ends or the object is dlclosed.
 * `roots` stays readable in between. Thread-safe. */
__attribute__((visibility("default"))) void pm__register(const struct pm__roots *roots);
__attribute__((visibility("default"))) void pm__unregister(const struct pm__roots *roots);

/* The place where the calling thread's strtok() goes on: a pointer into the program's memory.
 * runtime/text.c. */
extern __thread char *pm__strtok_rest
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* A walk up a thread's stack ends at the frame whose return address is between these two addresses. It
 * is the frame of the thread's start function. runtime/thread_entry.S. */
extern const char pm__thread_begin[] __attribute__((visibility("hidden")));
extern const char pm__thread_end[] __attribute__((visibility("hidden")));

#ifdef __cplusplus
}
#endif
#endif
