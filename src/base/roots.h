/*
 * Where code compiled by `pmcc --discover` says it keeps pointers outside the heap: in tables that
 * the pass makes in each translation unit. The linker joins them, and a constructor registers them
 * once for each program or shared object. And where its threads and its strtok() do. Discovery reads
 * all this; the pass and runtime/ make it.
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

/* A function that keeps its frame pointer, so that its frame and its caller's are found. Section
 * pm_functions. */
struct pm__function {
    void *start;  /* where its unwind information starts, too */
    size_t flags; /* PM__FUNCTION_* */
};

#define PM__FUNCTION_MAIN ((size_t)1) /* main(): nothing beyond its frame is the program's */

/* The three tables of a program or a shared object. A table without entries may be null, null. */
struct pm__roots {
    const struct pm__global *globals, *globals_end;
    const struct pm__local *locals, *locals_end;
    const struct pm__function *functions, *functions_end;
};

/* A constructor's call, before those of the program, and a destructor's when it ends or is
 * dlclosed, after those of the program. `roots` stays readable in between. Thread-safe. */
__attribute__((visibility("default"))) void pm__register(const struct pm__roots *roots);
__attribute__((visibility("default"))) void pm__unregister(const struct pm__roots *roots);

/* Where the calling thread's strtok() goes on: a pointer of the program's. runtime/text.c. */
extern __thread char *pm__strtok_rest
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* A walk up a thread's stack ends at the frame that returns to between these two addresses: it is
 * that of the function which the thread was made for. runtime/thread_entry.S. */
extern const char pm__thread_begin[] __attribute__((visibility("hidden")));
extern const char pm__thread_end[] __attribute__((visibility("hidden")));

#ifdef __cplusplus
}
#endif
#endif
