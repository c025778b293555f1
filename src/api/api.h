/* What the public functions share. Private to this folder. */
#ifndef PM_API_H
#define PM_API_H

#include "libpm.h"

#include "pointer/map.h"

/* An open container, its layers from bottom to top; so a pointer to the first is one to all. */
struct pm_container {
    struct container container;
    struct txn txn;
    struct allocator allocator;
    struct pointer_map pointers;
};

static_assert(offsetof(struct pm_container, container) == 0, "owner_of() relies on it");

/* -1 with ECHILD in a child of fork(2), where libpm is switched off. */
int api_enter_process(void);

/* The same, and EINVAL for NULL. */
int api_enter(const pm_container *c);

/* The same for a call that changes the container: EROFS when it is read-only. */
int api_enter_writing(const pm_container *c);

/* The open container that `p` points into; NULL with EINVAL or ECHILD. */
pm_container *owner_of(const void *p);

#endif
