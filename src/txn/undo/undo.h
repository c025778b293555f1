/*
 * The undo engine. The view is home. So the log has a page's contents at the start of the epoch before
 * the page can be stored to. A commit is one round. Private to this folder.
 *
 *                  store to a closed page: image, fence, open        +--------------------+
 *                              +----+                                |                    |
 *                              v    |                                v                    |
 *   txn_open --> recovery --> EPOCH e OPEN -- commit: cold pages closed, ------> words applied,
 *                  |           ^    |         one round with record e            e becomes e + 1
 *                  |           |    | rollback: images back,
 *                  |           +----+ words back; same epoch, pages stay open
 *                  |
 *                  +-- torn record or no record: images back; base epoch; then EPOCH base + 1
 *
 * The rules (docs/internals/undo.md) and where they are kept:
 *  U1  every line of every opened page is written back, every such live page listed     commit.c
 *  U2  halves of the log and record slots alternate by epoch                            ../log.h
 *  U3  fresh is judged by the committed bitmap; when a record holds                     recovery.c
 *  U4  which record recovery takes, what it copies back, what it applies                recovery.c
 *  U5  recovery makes durable what it relies on before it changes anything              recovery.c
 *  U6  the base epoch, by a round of its own, ends a recovery                        ../recovery.c
 *  U7  rollback stays in its epoch and keeps pages and images                           undo.c
 *  U8  a hot page is not written back home: its image proves it                         commit.c
 *  U9  words of a bitmap whose segment has another owner are not applied               recovery.c
 * U10  recovery takes no segment from the log                                          recovery.c
 * U11  what was fenced is noted, and recovery refuses a log that lacks it        here, recovery.c
 */
#ifndef PM_TXN_UNDO_UNDO_H
#define PM_TXN_UNDO_UNDO_H

#include "txn/txn.h"

/* commit() and recover() of struct engine. */
int undo_commit(struct txn *t);
int undo_recover(struct txn *t, uint64_t base, struct recovered *found);

/* All slots in use of the open epoch's half are fenced: store this fact for recovery. */
static inline void undo_note_images(struct txn *t)
{
    uint64_t word = fenced_images(t->epoch, t->log.half[t->epoch % 2].next);
    __atomic_store_n(&file_state(t->c)->fenced_images, word, __ATOMIC_RELAXED);
}

#endif
