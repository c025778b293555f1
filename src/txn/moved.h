/*
 * A container that lies elsewhere than its pointers mean, or whose pointers lead to programs and
 * libraries that do. Home keeps them for the addresses that it was made for; the view has them for
 * those of this process, page by page, as pages are touched.
 *
 * The view is memory of its own, mapped so that nobody can touch it. The first access to a page
 * faults, and the page is made from home: its bytes, and of its words those that home's pointer map
 * names brought to this process' addresses. They are written through the descriptor of that memory,
 * and only then the page can be read; so no thread ever sees a pointer that is not right. A commit,
 * by the redo engine whatever was asked for, goes the other way: what it compares with home, logs
 * and carries there are lines as home has them. So opening costs the same for any size, and a
 * container that is only read does not change.
 *
 * The more often a stretch of the container faults, the larger the neighbourhood that comes along:
 * one who touches a page here and there pays for few, and one who walks all of it, in whatever
 * order, pays for a few faults a stretch.
 *
 * Invariants, under the page lock
 *  V1  A page is FIXED if and only if it can be read, or is on its way; then it is what home and
 *      home's map say, but for what the open transaction has stored there, and for free space.
 *  V2  A page that is not FIXED takes no memory.
 *  V3  Fixed pages that were never open have nothing but what home has: they may go at any time.
 *
 * The idea: SoftPM and LIBPM fix pointers when a container is loaded; by page faults, Wilson's
 * "Pointer swizzling at page fault time" (1991).
 */
#ifndef PM_TXN_MOVED_H
#define PM_TXN_MOVED_H

#include "txn/txn.h"

struct moved {
    uint64_t home, view; /* the first byte a pointer leads to, as home and this process have it */
    uint32_t *maps;      /* per group: the segment of its map at the last commit, or 0 */
    bool maps_are_stale; /* segments have changed hands since */
    uint8_t *touches;    /* per stretch: how often it has faulted, up to TOUCHES_MAX */
    char *stage;         /* STAGE_PAGES, as they are being made */
    uint64_t copies_max; /* pages of the view that may have memory */
    uint32_t hand;       /* of the clock that gives it back */
};

/* For a container that is `moved`, recovered and mapped. `copies_max`: bytes. -1 with a message. */
int moved_load(struct txn *t, uint64_t copies_max);
void moved_unload(struct txn *t);

/* Have a page, and more around it, so that it can be read. Page lock. [handler] -errno */
int moved_touch(struct txn *t, uint32_t page);

/* Have nobody touch these pages, and give their memory back. Page lock. [handler] -errno */
int moved_forget(struct txn *t, uint32_t first, uint32_t count);

/* A commit has changed these words of home. */
void moved_note(struct txn *t, const struct record_word *words, uint64_t count);

/* Make a range of the view, of whole words and a page at most, what home has. Page lock. */
void moved_restore(struct txn *t, uint64_t offset, uint64_t bytes);

/* A line of the view as home has it; made in `image`. */
const char *moved_line(const struct txn *t, uint64_t line, char image[PM_LINE]);

/* The value of a pointer of home in this process, and the reverse. */
static inline uint64_t moved_to_view(const struct txn *t, uint64_t value)
{
    const struct moved *m = t->moved;
    return value - m->home < t->c->max_size ? value - m->home + m->view
                                            : modules_to_view(&t->modules, value);
}

static inline uint64_t moved_to_home(const struct txn *t, uint64_t value)
{
    const struct moved *m = t->moved;
    return value - m->view < t->c->max_size ? value - m->view + m->home
                                            : modules_to_home(&t->modules, value);
}

#endif
