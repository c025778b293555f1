/*
 * The sums over journaled words (container/sums.h), as transactions change them. `t->sums` are those
 * of the last commit; home's words are too, but for a word that the medium has lost.
 */
#ifndef PM_TXN_SUMS_H
#define PM_TXN_SUMS_H

#include "txn/txn.h"

/* What the sums are after a commit with these words, which home does not have yet. What lies in a
 * slab or a map that the commit gives back no longer counts. Two multiplications a word; and a visit of
 * each bitmap or map that goes. */
struct sums sums_after(const struct txn *t, const struct record_word *words, uint64_t count);

/* Add up what home has: of a table whose words make sense. Linear in the metadata. */
struct sums sums_of_home(const struct txn *t);

/* Compare home with `t->sums`: root, modules and segment table; or bitmaps and pointer map. -1 with a
 * message. The allocator's lock, or nobody else uses the container. */
int sums_check_fixed(const struct txn *t);
int sums_check_rest(const struct txn *t);

/*
 * Write `t->sums` to the state page, and to the guard `durable`, the newest durable epoch. After the next
 * fence the caller may raise the base epoch. -errno
 */
int sums_publish(struct txn *t, uint64_t durable);

/* Give a container of an older format sums and guard, and the version that has them. Recovery is
 * complete. Two rounds. -1 with a message. */
int sums_upgrade(struct txn *t);

#endif
