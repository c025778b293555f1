/*
 * A subject is a function that stores to memory in many ways. It is compiled by pmcc; the test then
 * compares the lines that it marked with those that it changed.
 *
 * It gets `m`, aligned to 8, with 16 KiB behind it and 1 KiB before, and a number n of at most 100.
 * It must store something everywhere it stores that differs between two runs on different contents,
 * or from what was there.
 */
#ifndef TEST_PMCC_SUBJECT_H
#define TEST_PMCC_SUBJECT_H

#ifdef __cplusplus
extern "C" {
#endif

typedef void subject(char *m, long n);

/* With `exact`, no line may be marked that has not changed. */
void add_subject(const char *name, subject *function, int exact);

/* As pm_commit(): what was stored up to here must be marked, and then nothing is marked. */
void commit(void);

#ifdef __cplusplus
}
#endif

#define ADD_SUBJECT(name, exact)                                                                   \
    static void name(char *m, long n);                                                             \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        add_subject(#name, name, exact);                                                           \
    }                                                                                              \
    static void name(__attribute__((unused)) char *m, __attribute__((unused)) long n)

#define SUBJECT(name)      ADD_SUBJECT(name, 1)
#define SUBJECT_MORE(name) ADD_SUBJECT(name, 0) /* may mark lines that it does not change */

#endif
