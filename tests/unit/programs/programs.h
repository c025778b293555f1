/* Examples that are programs, to be run by a test. */
#ifndef TEST_PROGRAMS_H
#define TEST_PROGRAMS_H

#ifdef __cplusplus
extern "C" {
#endif

int ledger_main(int argc, char **argv);
int wordindex_main(int argc, char **argv);

/* How many there are, after a walk of them all; -1 if something is wrong. `root`: of the container. */
long ledger_postings(void *root);
long wordindex_words(void *root);

#ifdef __cplusplus
}
#endif

#endif
