/*
 * Which commits are durable, and waiting for those that are not. On persistent memory a commit fences its
 * record itself, so nobody waits. On a file a *round* makes all records durable that were written before it
 * began, and threads share a round.
 *
 * The engine writes `committed` and `proved` under the page lock. The others are written by the thread that
 * leads a round, or on persistent memory by the commit.
 */
#ifndef PM_TXN_ROUNDS_H
#define PM_TXN_ROUNDS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct txn;

struct rounds {
    _Atomic uint64_t committed; /* newest epoch whose record is written */
    _Atomic uint64_t durable;   /* newest epoch that no crash undoes */
    _Atomic uint64_t proved;    /* newest epoch that a record, or the base epoch, calls durable */
    _Atomic uint64_t reusable;  /* newest epoch whose log is no longer needed */
    pthread_mutex_t sync_lock;  /* guards the following members */
    pthread_cond_t synced;
    _Atomic bool syncing;
    _Atomic uint32_t arrived; /* threads that wait for the next round; counted under the lock */
    uint32_t company;         /* threads that the next round may expect */
    uint64_t round_ns;        /* duration of the last round */
};

/* Begin when all epochs up to `durable` are. */
void rounds_open(struct rounds *r, uint64_t durable);
void rounds_close(struct rounds *r);

/* The record of the open epoch is written, and says that all epochs up to `fenced` are durable. On pmem fence
 * it; on a file rounds_wait() does so later, for several commits at once. Page lock. */
void rounds_note(struct txn *t, uint64_t fenced);

/* The same for a record that needs no fence of its own, because another follows at once. */
void rounds_announce(struct txn *t, uint64_t fenced);

/* Wait until the record of `epoch` is durable; on pmem it already is. 0, or -errno, which is sticky. Any
 * thread may call it, with the page lock or without. */
int rounds_sync(struct txn *t, uint64_t epoch);

/* On a file: run one more round, whatever is durable already. */
int rounds_fence(struct txn *t);

/* wait() of struct engine. */
int rounds_wait(struct txn *t, uint64_t epoch);

#endif
