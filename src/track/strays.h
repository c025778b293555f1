/*
 * The audit of pointers that nobody declared, under LIBPM_AUDIT=1. If no code tells what it stores, a
 * commit cannot know which words are pointers. So it looks *conservatively*, at each word that the
 * transaction has changed. If the process has memory at that address, outside of the container, the word
 * may be a pointer that the next run cannot follow. The commit warns and goes on, because the word may be
 * a number.
 *
 * The audit skips declared pointers, which address/foreign.h checks, and words that are in no object. It
 * compares all open pages. It costs nothing unless LIBPM_AUDIT is set.
 */
#ifndef PM_TRACK_STRAYS_H
#define PM_TRACK_STRAYS_H

#include "txn/txn.h"

/* Before a commit, while the caller holds the allocator's lock. Never fails, and leaves errno and the
 * message alone. */
void strays_warn(struct txn *t);

#endif
