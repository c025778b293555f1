/* Parts that the public functions share. Private to this folder. */
#ifndef PM_API_H
#define PM_API_H

#include "libpm.h"

#include "discovery/discovery.h"

/* An open container, its layers from bottom to top. So a pointer to the first layer is a pointer to all. */
struct pm_container {
    struct container container;
    struct txn txn;
    struct allocator allocator;
    struct discovery discovery;
};

static_assert(offsetof(struct pm_container, container) == 0, "owner_of() relies on it");

/* -1 with ECHILD in a child of fork(2), where libpm is switched off. */
int api_enter_process(void);

/* The same, and EINVAL for NULL. */
int api_enter(const pm_container *c);

/* The same for a call that changes the container: EROFS when it is read-only. */
int api_enter_writing(const pm_container *c);

/* pm_commit(), for a public function that the program calls from this frame. */
int api_commit(pm_container *c, struct frame program);

/* The steps of a commit that every container has, without discovery and without waiting for a file. `*epoch`:
 * of the last transaction that has been committed. */
int api_commit_transaction(pm_container *c, uint64_t *epoch);

/* Parts of calls that make an object; the allocator's lock is held for the whole call. */

/* A zeroed object; NULL with a message. */
void *api_calloc(pm_container *c, size_t count, size_t size);

/* The call has failed: free its new object, and give back everything else it has taken. Returns NULL. */
void *api_give_back(pm_container *c, void *p, struct allocator_call call);

/* Open the pages of a range for stores of code that tells nothing else, and mark it if need be. -errno */
int api_announce(pm_container *c, uint64_t offset, uint64_t bytes);

/* Whether a commit moves objects from the volatile heap into the container. */
static inline bool api_discovers(const pm_container *c)
{
    return c->discovery.a != NULL;
}

/* This thread's allocations go to this container, set by pm_set_current(). NULL: to the heap. */
extern _Thread_local pm_container *api_current __attribute__((tls_model("initial-exec")));

/* The open container that `p` points into; NULL with EINVAL or ECHILD. */
pm_container *owner_of(const void *p);

#endif
