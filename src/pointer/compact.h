/*
 * Compaction: objects move together, and every pointer to them is redirected through the map.
 *
 * Compaction works in steps, and each step is a transaction:
 *  1. copy a batch of objects, and free the old ones
 *  2. make one pass over the map, and redirect the pointers that led to the old objects
 *  3. commit
 * After a crash the container is as it was before or after a step. To the program the two differ only in
 * addresses. The next call goes on. At the end compaction frees maps that nobody needs, and txn_shrink()
 * cuts off the free end.
 *
 *   size of steps  The log must hold the lines or pages in which a step's pointers are. Their number is
 *                  known only afterwards. So the first step is small, and each next step is as large as
 *                  the log of the last one allows (STEP_LOG). A step without room is rolled back, and
 *                  tried again as a smaller one.
 *   passes         Each pass looks once at every pointer. Growing steps keep the passes few.
 *
 * The target of a pointer is judged at the beginning of the step:
 *
 *     into an object, or just past its end with no object there       that object
 *     just past the end of one object, to the start of the next       either: they move together (E2)
 *     nowhere                                                         nobody: it stays
 *
 * The idea: PMDK's defragmentation (pmemobj_defrag, 2020), where the program lists its pointers;
 * here the map has them. Mark-compact collectors redirect pointers in passes, too (Jonkers 1979).
 */
#ifndef PM_POINTER_COMPACT_H
#define PM_POINTER_COMPACT_H

#include "allocator/compact.h"
#include "pointer/pointers.h"

/* What the caller of a compaction does in between. No lock is held. */
struct compact_caller {
    /* Commit and wait until the commit is durable. -1 with a message: the transaction is still open. */
    int (*commit)(void *context);
    /* NULL, or called with the objects of a step, when their move is durable. */
    void (*moved)(void *context, const struct move *moves, uint32_t count);
    void *context;
};

struct compact_report {
    uint64_t objects, bytes, pointers, commits;
};

/*
 * Compact a container of which all pointers are mapped. Nothing has changed since the last commit, and it
 * is durable. Nobody else uses the container. `*report` says what has been done, even if the call fails
 * with -1 and a message. After a failure the open transaction is empty. If it is
 * not, because the rollback failed too, nobody can commit it: txn_check_rollback().
 */
int pointers_compact(struct allocator *a, const struct compact_caller *caller,
                     struct compact_report *report);

#endif
