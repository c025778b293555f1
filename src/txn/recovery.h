/* Recovery at open. Private to this folder and the engines'. */
#ifndef PM_TXN_RECOVERY_H
#define PM_TXN_RECOVERY_H

#include "txn/txn.h"

/* No container gets that old; what follows from a larger epoch might not fit a sealed word. */
#define EPOCH_MAX (UINT64_C(1) << (SEAL_BITS - 2))

/* What an engine's recovery has found. */
struct found {
    uint64_t restored; /* the epoch of home's state, */
    uint64_t newest;   /* and the newest of which a record or a part of one may have been left behind */
};

/*
 * Bring home to the state of the last commit that holds, and void the log. The log's tables are
 * loaded; home is mapped (privately when read-only: then nothing reaches the medium). Sets the
 * epoch to begin with. -1 with a message: EBADMSG when the log is damaged beyond use, EIO.
 */
int recover(struct txn *t);

/*
 * Each engine's part of it, for its own log whichever engine comes next: write what must be written
 * home, but leave the base epoch alone. `t->sums` are those at the base epoch, and become those of what
 * is restored.
 */
int undo_recover(struct txn *t, uint64_t base, struct found *found);
int redo_recover(struct txn *t, uint64_t base, struct found *found);

/* Take the sums that the record of `epoch` has, which begins at `where` in the file. -1 with a
 * message. */
int recovery_take_sums(struct txn *t, uint64_t word, uint64_t epoch, uint64_t where);

/*
 * What a record or image may name; checksums do not tell who made them. Ranges lie in the file,
 * behind the metadata, on multiples of `unit`; words are those of the root, of the segment table,
 * or behind the metadata. So recovery never writes headers and base epoch.
 */
bool recovery_range_is_valid(const struct txn *t, uint64_t offset, uint64_t bytes, uint64_t unit);
bool recovery_word_is_valid(const struct txn *t, uint64_t offset);

/* Whether base epoch, fenced words, sums and guard (container/format.h) are undamaged; -1: a message. */
int recovery_check_state(const struct txn *t);

/*
 * Whether a log from which the state of `epoch` can be restored has all that was committed. -1 with
 * a message that blames `where`, an offset in the file.
 */
int recovery_check_fenced(const struct txn *t, uint64_t epoch, uint64_t where);

/* U9 and U10 (docs/internals/undo.md), which both need. */
bool recovery_takes_log(const struct txn *t, const struct record_word *word);

/* Have a state page say that whatever the log says of `base` and older epochs is void. */
void void_log_in(const struct txn *t, struct format_state *state, uint64_t base);

/* Void what the log says of `base` and older epochs, once the next fence has passed. -errno */
int publish_base_epoch(struct txn *t, uint64_t base);

/* Let nothing that the log says of `newest` or older epochs, or of what these wrote ahead, count
 * any more. All that home needs is durable. -errno */
int raise_base_epoch(struct txn *t, uint64_t newest);

/*
 * Mark the file as open or closed: with the round that raises the base epoch, or by one of its own,
 * -errno. What is durable of mark and base epoch after a crash does not matter: when either is stored,
 * home is complete without the log.
 */
void set_file_mark(struct txn *t, uint64_t mark);
int publish_file_mark(struct txn *t, uint64_t mark);

#endif
