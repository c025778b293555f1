/*
 * The allocator: slabs for objects up to half a segment, runs of whole segments above. It works on the
 * shadow of journaled words, so nothing is flushed or fenced before a commit. After a crash, uncommitted
 * allocations have never happened.
 *
 * Persistent: a bitmap per slab, a word per segment. Volatile: a descriptor per segment (made at the first
 * access to the slab), and a list of slabs with possible room for each size class. The lists are rebuilt
 * from the segment table at open, after rollback and after clear. So there is only one way to make them,
 * and a rollback cannot get them wrong.
 *
 * A slot may be given out if it is free in the shadow *and* was free at the last commit. The reason: a
 * rollback must find freed objects untouched, and redo must never overwrite a live line.
 *
 * Invariants
 *  A1  A slab is LISTED in its class if it has a slot that may be given out. The converse need not
 *      hold: a listed slab without such a slot is dropped when an allocation meets it.
 *  A2  No word of a slab's bitmap below `hint` has a slot that may be given out.
 *  A3  A slab is in the `touched` chain if and only if its bitmap may differ from home.
 *
 * Bitmaps and slabs: Bonwick, "The Slab Allocator", 1994; publishing at commit: METRADB (Marmol
 * 2017, section 5.3).
 */
#ifndef PM_ALLOCATOR_H
#define PM_ALLOCATOR_H

#include "base/reciprocal.h"
#include "track/track.h"

#define SLAB_NONE UINT32_MAX

struct slab {
    struct journal_region bitmap;
    struct slab_shape shape;
    struct reciprocal by_size; /* divides granules by the object size */
    uint32_t segment;
    uint32_t hint;           /* word of the bitmap */
    uint32_t next, previous; /* in the list of its class; segments, or SLAB_NONE */
    struct slab *next_touched;
    uint64_t first_line, last_line; /* of slots that the open transaction gave out or took back */
    bool loaded, listed, touched;
};

/*
 * A call that fails has changed nothing. It begins with allocator_begin_call(). Then it may allocate
 * objects, and make maps of pointers. If it fails, it frees its objects and calls allocator_undo_call().
 * This gives back three things: new slabs without an object, maps made since the call began, and the
 * growth of the file. Nobody else may have used these maps; so the lock is held from the first one on, until
 * allocator_undo_locked().
 *
 * allocator_undo_call() locks, for a caller that has made no maps, or has given them back. errno stays.
 */
struct allocator_call {
    struct txn_call txn;
    uint64_t maps_made;
};

struct allocator {
    struct txn *t;
    struct container *c;
    struct lock lock;   /* guards everything here, the journal, and commit against allocation */
    struct slab *slabs; /* one a segment; a table of segments_max, filled as needed */
    uint32_t *first;    /* per class: the list of slabs; SLAB_NONE at the end */
    uint32_t classes;
    struct slab *touched;
    struct allocator_call commit; /* where the commit under way began */
    uint64_t rollbacks;           /* count that the program asked for, without those of clear */
};

static inline struct allocator_call allocator_begin_call(const struct allocator *a)
{
    return (struct allocator_call){txn_begin_call(a->t), counted(&a->t->map.made)};
}

void allocator_undo_call(struct allocator *a, struct allocator_call call);

/* The same for a caller that holds the lock. */
void allocator_undo_locked(struct allocator *a, struct allocator_call call);

int allocator_open(struct allocator *a, struct txn *t);
void allocator_close(struct allocator *a);

/* These lock. Sizes and alignments are checked; NULL or -1 with a message. */
void *allocator_allocate(struct allocator *a, size_t size, size_t alignment);
int allocator_free(struct allocator *a, const void *p);

/* The same for a caller that holds the lock. A call that does more with an object than one of these must hold
 * the lock from its first step to its last. Otherwise another thread's rollback, and an allocation after it,
 * might give the object's memory to somebody else in between. */
void *allocator_allocate_locked(struct allocator *a, size_t size, size_t alignment);
int allocator_free_locked(struct allocator *a, const void *p);

/* Usable bytes of the object that begins at `p`; 0 with a message if none does. The lock is held. */
size_t allocator_usable(struct allocator *a, const void *p);

/* The object in use that `p` points into, its offset and usable bytes; false if none. The lock is
 * held. */
bool allocator_object_at(const struct allocator *a, const void *p, uint64_t *start, uint64_t *size);

/*
 * The allocator's steps of a commit. Before: take the lock, give empty slabs back, and note the pages that
 * live or die with this commit. After, with the commit's result: if it failed, undo what the commit took;
 * drop the notes; release the lock. Returns the epoch of the last transaction that has been committed, by
 * this call or before.
 */
void allocator_begin_commit(struct allocator *a);
uint64_t allocator_end_commit(struct allocator *a, int result);

int allocator_rollback(struct allocator *a);
int allocator_clear(struct allocator *a);                   /* the lock is held */
int allocator_reserve(struct allocator *a, uint64_t bytes); /* the lock is held */
int allocator_set_root(struct allocator *a, const void *p, size_t size);
void *allocator_root(struct allocator *a);

/* If the root is `from`, make it `to`, an object. The lock is held. */
void allocator_replace_root(struct allocator *a, const void *from, const void *to);

/* The root, and the size to pass when it is set again. */
char *allocator_root_object(struct allocator *a, uint64_t *size);

/* The root's offset, or 0; and set the new offset after its object has moved. The lock is held. */
uint64_t allocator_root_offset(const struct allocator *a);
void allocator_move_root(struct allocator *a, uint64_t offset);

/* The first object in use at `*offset` or behind it, its offset and usable bytes; false if there is
 * none. The lock is held. Linear in the segments and slots that it passes. */
bool allocator_next_object(const struct allocator *a, uint64_t *offset, uint64_t *size);

/* The allocator's part of pm_check(): bitmaps and root; -1 with a message. The lock is held. */
int allocator_check(struct allocator *a);

#endif
