/*
 * Cases of programs that know nothing of libpm but to open, set a root and commit, compiled by
 * `pmcc --discover` at each level. Assertions, since what calls a commit must be compiled so, too.
 */
#ifndef TEST_PMCC_DISCOVER_H
#define TEST_PMCC_DISCOVER_H

#include <assert.h>
#include <libpm.h>
#include <stdlib.h>

#ifdef NDEBUG
#error these tests are made of assertions
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* An empty container of the case's own; flags besides PM_CREATE | PM_DISCOVER. */
pm_container *fresh(unsigned flags);

/* The same without flags, but pointers to freed memory fail a commit. */
pm_container *fresh_that_refuses(void);

/* Close it and open it again. */
pm_container *again(pm_container *c);

/* Set the root and commit, or only commit; both succeed. Not inlined. */
void keep_all(pm_container *c, void *root);
void keep_changes(pm_container *c);

/* What the optimiser is not to know: n, or p. */
long number(long n);
void *pointer(void *p);

struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
};
void add_case(struct test_case *test_case);

#define CASE(name)                                                                                 \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        static struct test_case test_case = {#name, name, NULL};                                   \
        add_case(&test_case);                                                                      \
    }                                                                                              \
    __attribute__((noinline)) static void name(void)

#ifdef __cplusplus
}
#endif
#endif
