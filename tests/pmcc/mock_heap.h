/*
 * A heap in the arena that notes each call, as "malloc free", for what code compiled by
 * `pmcc --discover` calls. Stands for the library's; new.cc, heap_libc.c, interpose.c, register.c and
 * thread.c are the real ones.
 *
 * In C: templates of C++ that the subjects instantiate would be shared with it.
 */
#ifndef TEST_PMCC_MOCK_HEAP_H
#define TEST_PMCC_MOCK_HEAP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef NDEBUG
#error these tests are made of assertions
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* For subjects: what is in `p` may change, and be used, so that no allocation is optimised away. */
void *keep(void *p);

bool is_mocked(const void *p); /* live memory of this heap */
size_t live_objects(void);

/* How often the registered tables have a variable of this address and size, one of the thread's, or a
 * function. */
int count_global(const void *p, size_t size);
int count_local(const void *p, size_t size);
int count_function(void (*function)(void), bool is_main);

/* Forget the calls so far. */
void forget_calls(void);

/* The calls since then, in a buffer that the next call changes. */
const char *calls(void);

/* Whether all these bytes were announced since then; as pointers, if `as_copy`. */
bool is_announced(const void *p, size_t n, bool as_copy);

/* So many allocations will still succeed. */
void fail_after(int allocations);

/* A subject allocates and frees; `calls` are those that shall arrive at the library. Any, if empty. */
struct use {
    const char *name;
    void (*run)(void);
    const char *calls;
    struct use *next;
};
void add_use(struct use *use);

#define USE(name, calls)                                                                           \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        static struct use use = {#name, name, calls, NULL};                                        \
        add_use(&use);                                                                             \
    }                                                                                              \
    static void name(void)

#ifdef __cplusplus
}
#endif
#endif
