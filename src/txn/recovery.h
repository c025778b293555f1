/* Recovery of the undo engine. Private to this folder. */
#ifndef PM_TXN_RECOVERY_H
#define PM_TXN_RECOVERY_H

#include "txn/txn.h"

/*
 * Bring home to the state of the last commit that holds, and void the log. Works on home alone;
 * the log is loaded. Sets t->epoch and t->recovery. -1 with a message, and then nothing
 * was changed.
 */
int recover(struct txn *t);

/*
 * Make a new base epoch durable, by a round of its own (rule 6): two above anything the
 * log can hold, which is at most an image of `newest` + 2, written ahead by a torn commit
 * of `newest` + 1.
 */
void raise_base_epoch(struct txn *t, uint64_t newest);

#endif
