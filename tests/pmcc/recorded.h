/*
 * A structure with pointers, written by code that pmcc compiles: the pointer map that its stores
 * make must be the one that declarations make of the same structure.
 *
 * A structure is built in steps with a commit after each, in a container of its own, in each of
 * three ways; then both it and a copy of it at other addresses are checked.
 */
#ifndef TEST_PMCC_RECORDED_H
#define TEST_PMCC_RECORDED_H

#include <libpm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPS 4 /* 0 to 3 */

/* Zeroed objects whose pointers are declared, by whatever way is in use; not at all by the pass. */
void *make(pm_container *c, const struct pm_type *type, size_t count);

/* Zeroed memory of which nothing is declared. */
void *make_bytes(pm_container *c, size_t bytes);

/* The root, which step 0 makes so. */
void *root_bytes(pm_container *c, int step, size_t bytes);

/* For the other two ways: what no type says. */
void has_pointer(void *field);
void has_data(void *field, size_t bytes);

/* A number that the compiler does not know: n. */
long number(long n);

/* What is wrong, or NULL; the check is not to be optimised on what the building knew. */
typedef void build_function(pm_container *c, int step);
typedef const char *check_function(pm_container *c);
void add_structure(const char *name, build_function *build, check_function *check);

#define STRUCTURE(name)                                                                            \
    static void build_##name(pm_container *c, int step);                                           \
    static const char *check_##name(pm_container *c);                                              \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        add_structure(#name, build_##name, check_##name);                                          \
    }
#define REQUIRE_THAT_IT_HAS(condition)                                                             \
    if (!(condition))                                                                              \
    return #condition

#ifdef __cplusplus
}
#endif
#endif
