/* Moving a container's pointers to other addresses. */
#ifndef PM_POINTER_RELOCATE_H
#define PM_POINTER_RELOCATE_H

#include "txn/txn.h"

/*
 * Make home's pointers mean the addresses where the container lies. Home is that of the last commit, the
 * log is void, and nobody sees the view yet. After a failure (-1 with a message) the next opening goes on.
 * If there is anything to do, this takes one pass over the memory of mapped pointers, and over the bitmaps.
 */
int pointers_relocate(struct txn *t);

/* If the program does not vouch for the pointers it will store, note on the medium that the container can
 * no longer be moved. This is for good. So it is the last step of an opening, when nothing else can fail,
 * and before the program can store. -1 with a message. */
int pointers_note_immovable(struct container *c);

/* Whether a mapped pointer of home leads to [from, from + size); sets the first such pointer's offset. One
 * pass over the memory of mapped pointers. */
bool pointers_find(struct container *c, uint64_t from, uint64_t size, uint64_t *offset);

#endif
