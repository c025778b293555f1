/*
 * How libpm learns what a program has stored, and where its pointers are. Under tracker `stores` compiled
 * code tells it: marks say which lines, kinds say which words are pointers. Under `faults` nobody tells, and
 * the pages that faulted are looked at.
 *
 * Between two commits, for code that stores:   marks.c, kinds.c, copy.c
 * Steps of a commit:
 *
 *   track_map_pointers()     the pointer map gets the kinds of words            map.c
 *   track_check_pointers()   no pointer leads out, if no code tells kinds       declared.c, strays.c
 *   track_audit()            no store was missed                                audit.c
 *
 * What was told is in `t->tracker` (pages/tracker.h), where the engines read it.
 */
#ifndef PM_TRACK_TRACK_H
#define PM_TRACK_TRACK_H

#include "txn/txn.h"

/* ---- marks.c --------------------------------------------------------------------------------- */

/* When the stores of a mark are made. */
enum mark_time {
    MARK_AHEAD,    /* all of them after the mark */
    MARK_WHENEVER, /* some perhaps before the mark, in this transaction */
};

/* Mark a line of the file as stored to. Thread-safe, signal-safe. But no commit, rollback or clear of the
 * container may run meanwhile, for it clears the list of marks. Compiled code has the program's word. Where
 * the program may commit in another thread, the caller holds the allocator's lock: pm_dirty() and its kin.
 * The same is true of all functions here and in kinds.c. */
void track_mark(struct txn *t, uint64_t line, enum mark_time when);

/* Mark all lines of a range. */
void track_mark_range(struct txn *t, uint64_t offset, uint64_t bytes, enum mark_time when);

/*
 * An object of a slab has been allocated: `bytes` from `offset` on, in a slot of `room` bytes. Mark its lines
 * together if that is possible, and worth it (T3). Otherwise they are marked when the program stores to them.
 * The allocator's lock is held, and the program does not have the object yet.
 */
void track_mark_object(struct txn *t, uint64_t offset, uint64_t bytes);

static inline void track_new_object(struct txn *t, uint64_t offset, uint64_t bytes, uint64_t room)
{
    if (bytes >= OBJECT_MIN && bytes <= t->tracker.object_max && (offset | room) % PM_LINE == 0)
        track_mark_object(t, offset, bytes);
}

/* Open the pages of [offset, offset + bytes) of the file for stores, and mark the range. -errno: no page
 * was opened. */
int track_dirty(struct txn *t, uint64_t offset, uint64_t bytes);

/* ---- kinds.c --------------------------------------------------------------------------------- */

/*
 * Kinds (base/marks.h), if `t->tracker.kinds`. In other containers these functions do nothing, and pointers
 * are the mapped words.
 *
 *   track_set_kind      the marked words of a range are data, pieces, or pointers, or free.
 *   track_copy_kinds    memory at `from`, in a container or not, is about to be copied to the range,
 *                       which is marked. Its whole words get the kinds of the words there.
 *   track_mark_foreign  the range is marked, and code that tells no kinds will store to it.
 */
void track_set_kind(struct txn *t, uint64_t offset, uint64_t bytes, uint8_t kind);
void track_copy_kinds(struct txn *t, uint64_t offset, const void *from, uint64_t bytes);
void track_mark_foreign(struct txn *t, uint64_t offset, uint64_t bytes);

/* As track_set_kind(), in a table of kinds of a container or of the heap. `offset` counts from the table's
 * first word. */
void track_set_kinds(uint8_t *kinds, uint64_t offset, uint64_t bytes, uint8_t kind);

/* ---- copy.c ---------------------------------------------------------------------------------- */

/* The kinds of up to 8 words at an address, in a container or not: one byte each, the first the lowest. */
uint64_t track_kinds_at(const void *address, uint64_t words);

/* Copy the kinds of any number of words to a table that is not a container's. `to` may be the kinds of
 * the words at `address` themselves, if these are about to be moved within the volatile heap. */
void track_copy_kinds_out(uint8_t *to, const void *address, uint64_t count);

/* ---- at commit ------------------------------------------------------------------------------- */

/* Called with the offset of a word. If it returns another value than 0, the search ends. */
typedef int track_found(void *context, uint64_t offset);

/* Find the words that the open transaction has stored to, not as data, and whose value is in [low, low +
 * size). Linear in the lines stored to. -1 if `found` ended the search. */
int track_find_pointers(struct txn *t, uint64_t low, uint64_t size, track_found *found,
                        void *context);

/* Fail a commit, because a pieced word leads to an object. Returns -1. */
int track_refuse_pieced(const struct txn *t, uint64_t offset);

/* Bring the pointer map up to date with the transaction's stores. The allocator's lock is held, the page
 * lock is not. 0, or -1 with a message. Linear in the lines stored to. */
int track_map_kinds(struct txn *t);

static inline int track_map_pointers(struct txn *t)
{
    return t->tracker.kinds ? track_map_kinds(t) : 0;
}

/* For containers where no code tells kinds. Check the declared pointers on changed pages, if the program
 * vouches for them. Under LIBPM_AUDIT warn of words that look like pointers. Locking and result as
 * track_map_pointers(). */
int track_check_changed(struct txn *t);

static inline int track_check_pointers(struct txn *t)
{
    return t->looks ? track_check_changed(t) : 0;
}

/* With concurrent stores a thread may store a pointer after the check, and before commit closes the pages.
 * True if a page was stored to since, and has a pointer that must be checked. The page lock is held. */
bool track_was_overtaken(const struct txn *t);

/*
 * Compare open pages with home: one page every AUDIT_EVERY commits. Under LIBPM_AUDIT compare all open
 * pages at every commit, and the images too. -1 with EFAULT and a message if it finds a missed store. All
 * missed stores are then marked, and no image is left. Between txn_begin_commit() and txn_end_commit().
 */
int track_audit_pages(struct txn *t);

/* Without LIBPM_AUDIT one commit in so many looks for missed stores. */
#define AUDIT_EVERY 64

static inline int track_audit(struct txn *t)
{
    bool due = t->tracker.stores && (t->tracker.audit || t->commits % AUDIT_EVERY == 0);
    return due ? track_audit_pages(t) : 0;
}

#endif
