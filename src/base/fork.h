/*
 * What happens at fork(2), in one place. A child has no container, but it may use the volatile heap, and
 * every lock of libpm must be free there. So before a fork the locks are taken in the order of the stages,
 * and afterwards released in reverse on both sides. A thread that holds a lock of one stage may want locks
 * of later stages, and of no earlier one.
 *
 * libpm watches from the moment it is loaded. Handlers that the program registers later
 * run before these steps at a fork, and after them when the fork has happened.
 */
#ifndef PM_BASE_FORK_H
#define PM_BASE_FORK_H

#include "base/lock.h"

enum fork_stage {
    FORK_OPENING,    /* no container is being opened or closed (pages/fault.c) */
    FORK_HEAP,       /* the volatile heap (discovery/heap.c) */
    FORK_MODULES,    /* variables of modules (discovery/roots.c) */
    FORK_DISCOVERY,  /* the list of containers that discover (discovery/discovery.c) */
    FORK_EXCLUSIONS, /* excluded fields (discovery/exclusions.c) */
    FORK_STAGES
};

/* From now on a fork takes this lock at its stage. Any thread may call it, again too. */
void fork_take(enum fork_stage stage, struct lock *lock);

/* From now on a fork calls these functions at its stage, `in_child` instead of `after` in the child. */
void fork_call(enum fork_stage stage, void (*before)(void), void (*after)(void),
               void (*in_child)(void));

#endif
