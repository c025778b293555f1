/*
 * Discovery: at commit, what the container leads to in the volatile heap moves into it, and all that
 * leads there is redirected. The face of this folder.
 *
 * A commit that finds no such pointer among what the transaction has stored does nothing here. Else
 *
 *   check     that no frame or thread may have pointers where nobody looks          roots.h
 *   gather    breadth first from the pointers found: each object gets a copy in the
 *             container, and its own first word says which                          closure.c
 *   redirect  pointers in the copies, in the container, on the heap, in variables,
 *             on the stack; of what is not in the copies the old value is noted     closure.c
 *   commit    as ever. If that fails, or any of it, all is put back
 *   release   the old memory is freed
 *
 * So nothing has changed until the commit has happened; a crash leaves the container as it was.
 *
 * SoftPM (Guerra et al., USENIX ATC 2012), section 3.3: container closure. Breadth-first copying:
 * Cheney, CACM 13 (1970).
 */
#ifndef PM_DISCOVERY_H
#define PM_DISCOVERY_H

#include "base/vector.h"
#include "discovery/roots.h"
#include "pointer/map.h"

struct discovery {
    struct pointer_map *map; /* NULL: the container does not discover */
    bool vouched;            /* nobody holds pointers where discovery does not look */
    bool refuse_freed;       /* a pointer to freed memory fails the commit */
    uint64_t freed;          /* pointers to freed memory that this commit has replaced, */
    uint64_t freed_ever;     /* and all commits before it */
    void *root;              /* of the heap, to be the root from the next commit on */
    size_t root_size;
    struct vector words;    /* uint64_t: of the container, offsets that lead to the heap */
    struct vector moves;    /* struct move */
    struct vector changes;  /* struct change */
    struct discovery *next; /* of all that are open */
};

/* A container that discovers has been opened; or it is about to be closed. */
void discovery_open(struct discovery *d, struct pointer_map *map, bool vouched, bool refuse_freed);
void discovery_close(struct discovery *d);

/* Commit as allocator_commit() does, of a container that discovers, for a program that calls from
 * this frame. -1 with a message: nothing has changed. Linear in the lines stored to and in what moves;
 * if anything moves, also in the cards of the heap that were written since that was last so, in the
 * variables and in the stack. */
int discovery_commit(struct discovery *d, struct frame program, uint64_t *epoch);

/* What follows a rollback. */
void discovery_rolled_back(struct discovery *d);

/* The root is to be an object of the heap; `size` as pm_setroot(). -1 with a message. */
int discovery_set_root(struct discovery *d, void *object, size_t size);

#endif
