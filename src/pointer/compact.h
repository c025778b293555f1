/*
 * Compaction: objects move together, and every pointer to them is redirected through the map.
 *
 * In steps, each a transaction of its own: a batch of objects is copied, the old ones are freed,
 * one pass over the map redirects what led to them, commit. After a crash the container is as it
 * was before a step or after it, which to the program are the same but for the addresses; the next
 * call goes on. At last maps that nobody needs go, and txn_shrink() cuts the free end off.
 *
 *   size of steps  the log must hold the lines or pages in which a step's pointers are; how many
 *                  that will be is known afterwards only. So the first step is small, and each
 *                  next one as large as the last one's log allows (STEP_LOG). A step for which there is no room
 *                  is rolled back and tried again as a smaller one
 *   passes         each costs one look at every pointer; growing steps make that few
 *
 * What a pointer leads to is judged by where it led when the step began
 *
 *   into an object, or just past its end with no object there       that object
 *   just past the end of one object, to the start of the next       either: they move together (E2)
 *   nowhere                                                         nobody: it stays
 *
 * The idea: PMDK's defragmentation (pmemobj_defrag, 2020), where the program lists its pointers;
 * here the map has them. Mark-compact collectors redirect by such passes too (Jonkers 1979).
 */
#ifndef PM_POINTER_COMPACT_H
#define PM_POINTER_COMPACT_H

#include "allocator/compact.h"
#include "pointer/map.h"

struct compact_listener {
    /* NULL, or told each object that has moved, when that is durable; no lock is held. */
    void (*moved)(void *context, void *from, void *to, size_t bytes);
    void *context;
};

struct compact_report {
    uint64_t objects, bytes, pointers, commits;
};

/*
 * Compact a container of which all pointers are mapped. Nothing has changed since the last commit,
 * which is durable; nobody else uses the container. `*report` is of what has been done, even if that
 * ended in -1 with a message; then the open transaction is empty.
 */
int pointers_compact(struct pointer_map *map, const struct compact_listener *listener,
                     struct compact_report *report);

#endif
