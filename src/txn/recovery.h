/* Recovery at open. Private to this folder and the engines'. */
#ifndef PM_TXN_RECOVERY_H
#define PM_TXN_RECOVERY_H

#include "txn/txn.h"

/* No container gets that old. A value derived from a larger epoch might not fit into a sealed word. */
#define EPOCH_MAX (UINT64_C(1) << (SEAL_BITS - 2))

/*
 * Bring home to the state of the last commit that holds, and void the log. The log's tables must be
 * loaded, and home mapped (privately if read-only: then nothing reaches the medium). It sets the epoch to
 * begin with. -1 with a message: EBADMSG if the log is damaged beyond use, or EIO.
 */
int recover(struct txn *t);

/* Take the sums from the record of `epoch`, which begins at `where` in the file. -1 with a message. */
int recovery_take_sums(struct txn *t, uint64_t word, uint64_t epoch, uint64_t where);

/*
 * Check the ranges and words that a record or image names, because a checksum does not tell who made it.
 * A range must lie in the file, behind the metadata, on multiples of `unit`. A word must be a word of the
 * root or of the segment table, or lie behind the metadata. So recovery never writes headers and base
 * epoch.
 */
bool recovery_range_is_valid(const struct txn *t, uint64_t offset, uint64_t bytes, uint64_t unit);
bool recovery_word_is_valid(const struct txn *t, uint64_t offset);

/* Check that base epoch, fenced words, sums and guard (container/format.h) are undamaged. 0, or -1 with a
 * message. */
int recovery_check_state(const struct txn *t);

/*
 * Check that a log from which the state of `epoch` can be restored has everything that was committed. If
 * not, -1 with a message that blames `where`, an offset in the file.
 */
int recovery_check_fenced(const struct txn *t, uint64_t epoch, uint64_t where);

/* True if the word would take a segment from the log. U9 and U10 (docs/internals/undo.md) need this. */
bool recovery_takes_log(const struct txn *t, const struct record_word *word);

/* Make a state page say that the log is void up to epoch `base`. */
void void_log_in(const struct txn *t, struct format_state *state, uint64_t base);

/* Void the log up to epoch `base`, as soon as the next fence has passed. -errno */
int publish_base_epoch(struct txn *t, uint64_t base);

/* Void the log up to epoch `newest`, and everything that these epochs wrote ahead. All that home needs
 * must be durable. -errno */
int raise_base_epoch(struct txn *t, uint64_t newest);

/*
 * set_file_mark() marks the file as open or closed in the round that raises the base epoch.
 * publish_file_mark() does so by a round of its own, -errno. A crash may make only the mark or only the
 * base epoch durable. This does no harm: when either is stored, home is complete without the log.
 */
void set_file_mark(struct txn *t, uint64_t mark);
int publish_file_mark(struct txn *t, uint64_t mark);

#endif
