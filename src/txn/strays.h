/*
 * The audit of pointers that nobody declared, under LIBPM_AUDIT=1. Where no code tells what it stores, a
 * commit cannot know which words are pointers. So it looks *conservatively*, at each word that the
 * transaction has changed. If the process has memory at that address, outside of the container, the
 * word may be a pointer that the next run cannot follow. The commit warns and goes on, for the word
 * may as well be a number.
 *
 * Not looked at are declared pointers, of which txn/foreign.h judges, and what is in no object.
 * Costs a comparison of all pages that are open; nothing unless LIBPM_AUDIT is set.
 */
#ifndef PM_TXN_STRAYS_H
#define PM_TXN_STRAYS_H

#include "txn/txn.h"

/* Before a commit; the allocator's lock is held. Never fails: errno and the message stay. */
void strays_warn(struct txn *t);

#endif
