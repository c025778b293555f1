/* Moving a container's pointers to other addresses. */
#ifndef PM_POINTER_MOVE_H
#define PM_POINTER_MOVE_H

#include "txn/txn.h"

/*
 * Home is that of the last commit, the log is void, nobody sees the view yet: make home's pointers
 * mean the addresses where the container lies, and note if the program does not vouch for those
 * that it will store. -1 with a message; the next opening goes on. One pass over the memory of
 * mapped pointers, and over the bitmaps, if there is anything to do.
 */
int pointers_move(struct txn *t);

/* Whether a mapped pointer of home leads to [from, from + size), and the first one's offset. One pass
 * over the memory of mapped pointers. */
bool pointers_find(struct container *c, uint64_t from, uint64_t size, uint64_t *offset);

#endif
