/*
 * The sums over journaled words (container/sums.h), as transactions change them. `t->sums` has the sums
 * of the last commit. They are also the sums of home's words, unless the medium has lost a word.
 */
#ifndef PM_TXN_SUMS_H
#define PM_TXN_SUMS_H

#include "txn/txn.h"

/* The sums after a commit with these words, which home does not have yet. If the commit gives back a slab
 * or a map, its words no longer count. This costs two multiplications a word, and a walk over each bitmap
 * or map that goes. */
struct sums sums_after(const struct txn *t, const struct record_word *words, uint64_t count);

/* Add up home's words. The segment table must be valid. Linear in the metadata. */
struct sums sums_of_home(const struct txn *t);

/* Compare home with `t->sums`. sums_check_fixed() compares root, modules and segment table;
 * sums_check_rest() compares bitmaps and pointer map. The caller holds the allocator's lock, or nobody else
 * uses the container. A file of an older format has no sums, and passes, as a log container does. -1 with a
 * message. */
int sums_check_fixed(const struct txn *t);
int sums_check_rest(const struct txn *t);

/*
 * Write `t->sums` to the state page, and `durable`, the newest durable epoch, to the guard. After the
 * next fence the caller may raise the base epoch. -errno
 */
int sums_publish(struct txn *t, uint64_t durable);

/* Give a container of an older format sums, a guard, and the format version that has them. From then on an
 * older libpm refuses it, so pm_open() has no checks left. Two rounds, and two of the headers. A read-only
 * container stays as it is. -1 with a message. */
int sums_upgrade(struct txn *t);

#endif
