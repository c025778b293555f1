/*
 * Discovery: a commit moves into the container every object of the volatile heap to which the container
 * leads, and redirects all pointers to these objects. This is the interface of the folder.
 *
 * If a transaction has stored no such pointer, its commit does nothing here. Otherwise it takes five
 * steps:
 *
 *   check     No frame or thread may have pointers where nobody looks (roots.h).
 *   gather    Breadth first from the pointers found. Each object gets a copy in the container, and the
 *             object's first word says which copy (closure.c).
 *   redirect  Redirect pointers in the copies, in the container, on the heap, in variables, on the
 *             stack. Outside of the copies note each old value (closure.c).
 *   commit    The usual commit. If it fails, or any step before, all is put back.
 *   release   Free the old memory.
 *
 * So nothing has changed until the commit has happened; a crash leaves the container as it was.
 *
 * SoftPM (Guerra et al., USENIX ATC 2012), section 3.3: container closure. Breadth-first copying: Cheney,
 * CACM 13 (1970).
 */
#ifndef PM_DISCOVERY_H
#define PM_DISCOVERY_H

#include "base/vector.h"
#include "discovery/roots.h"
#include "pointer/pointers.h"

struct discovery {
    struct allocator *a; /* NULL: the container does not discover */
    bool vouched;        /* nobody holds pointers where discovery does not look */
    bool refuse_freed;   /* a pointer to freed memory fails the commit */
    uint64_t freed;      /* pointers to freed memory that this commit has replaced */
    uint64_t freed_ever; /* the same for all commits before */
    void *root;          /* object of the heap that the next commit makes the root */
    size_t root_size;
    bool root_freed;      /* `root` has been freed since: something else may be there now */
    bool root_redirected; /* the container's root is the copy of `root`, until the commit ends */
    void *old_root;       /* what it was before */
    uint64_t old_root_size;
    struct vector words;    /* uint64_t: offsets in the container of words that lead to the heap */
    struct vector moves;    /* struct move */
    struct vector changes;  /* struct change */
    struct discovery *next; /* list of all open containers that discover */
};

/* Call discovery_open() after opening a container that discovers, and discovery_close() before closing
 * it. */
void discovery_open(struct discovery *d, struct allocator *a, bool vouched, bool refuse_freed);
void discovery_close(struct discovery *d);

/*
 * Of the commits, rollbacks and detachments of all containers that discover, only one runs at a time. All
 * of them look at the same heap: they follow the first words of moving objects, and they take the cards.
 * So does what sets or forgets a root that the next commit brings. free() and realloc() of such a root take
 * only the list's lock.
 */
void discovery_enter(void);
void discovery_leave(void);

/* For pointers_check(): true for an excluded field, or if the next commit moves the field's target. */
bool discovery_lets_lead_out(const uint64_t *word);

/*
 * Discovery's steps of a commit (api/commit.c has all steps). -1 with a message. Linear in the lines stored
 * to, and in the objects that move. If any object moves, it is also linear in the variables, the stack, and
 * the cards of the heap written since the last such commit.
 *
 *   discovery_find      Note the words stored that lead to the heap. After a failure nothing is noted.
 *   discovery_gather    Gather the objects that move, in closure.c.
 *   discovery_redirect  Lead everything to the copies. The program called from the frame `program`, and the
 *                       stack is redirected from `stack_top` on. The caller's frame has the registers of
 *                       the program's functions, so it must exist until discovery_end() has returned.
 *   discovery_end       The commit has this result: release the old memory, or put everything back.
 */
int discovery_find(struct discovery *d);
int discovery_gather(struct discovery *d);
int discovery_redirect(struct discovery *d, struct frame program, void *stack_top);
void discovery_end(struct discovery *d, struct allocator_call call, int result);

/* Whether the commit has more to do than discovery_find(). */
static inline bool discovery_has_moves(const struct discovery *d)
{
    return d->words.count > 0 || d->root;
}

/* While objects move no signal handler of the program runs: it must see all objects at their old place, or
 * all at their new one. */
void discovery_block_signals(sigset_t *saved);

/* Call this after a rollback. */
void discovery_rolled_back(struct discovery *d);

/* Make an object of the heap the root, with the next commit; `size` as pm_setroot(). -1 with a message. */
int discovery_set_root(struct discovery *d, void *object, size_t size);

/* Forget it: another root was set, or it is the root. */
void discovery_drop_root(struct discovery *d);

/* An object of the heap has been copied to `to`, where it has `size` bytes, or is about to be freed: `to` is
 * NULL. If it was to become a root, its copy does, or the commit fails. */
void discovery_move_root(const void *object, void *to, size_t size);

#endif
