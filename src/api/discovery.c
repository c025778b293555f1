/* Discovery: excluded fields, detaching objects, and allocating in a container directly. */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "discovery/detach.h"
#include "discovery/exclusions.h"
#include "discovery/heap.h"

#include <errno.h>
#include <pthread.h>

_Thread_local pm_container *api_current __attribute__((tls_model("initial-exec")));

/* Whether a field can be excluded; -1 with a message. */
static int check_field(const void *field)
{
    struct heap_object object;
    if (api_enter_process() != 0)
        return -1;
    bool is_ours = heap_contains(field) && heap_find(field, &object) == HEAP_LIVE;
    if (!is_ours && !heap_contains(field)) {
        pm_container *c = owner_of(field);
        if (!c || api_enter_writing(c) != 0)
            return -1;
        is_ours = api_discovers(c);
    }
    if (!is_ours || (uintptr_t)field % sizeof(uint64_t))
        return pm__fail(EINVAL,
                        "%p is no aligned word of a container that is PM_DISCOVER, nor of a "
                        "malloc'ed object",
                        field);
    return 0;
}

int pm_exclude(void *field)
{
    DEFER_CANCELLATION;
    if (check_field(field) != 0)
        return -1;
    int error = exclusions_add(field);
    return error == 0 ? 0 : pm__fail_system(-error, "%p: cannot be excluded", field);
}

int pm_include(void *field)
{
    DEFER_CANCELLATION;
    if (check_field(field) != 0)
        return -1;
    return exclusions_remove(field) ? 0 : pm__fail(EINVAL, "%p is not excluded", field);
}

/* Signals are blocked as in a commit that moves objects. */
static void *detach(pm_container *c, struct frame program, void *ptr)
{
    sigset_t saved;
    discovery_enter();
    discovery_block_signals(&saved);
    void *detached = discovery_detach(&c->discovery, program, ptr);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    discovery_leave();
    return detached;
}

ROOTS_ENTRY void *pm_detach(void *ptr)
{
    DEFER_CANCELLATION;
    pm_container *c = owner_of(ptr);
    if (!c || api_enter_writing(c) != 0)
        return NULL;
    if (!api_discovers(c))
        return pm__fail_null(EINVAL, "%s: opened without PM_DISCOVER", c->container.path);
    return detach(c, roots_caller(), ptr);
}

int pm_set_current(pm_container *c)
{
    DEFER_CANCELLATION;
    if (c && api_enter_writing(c) != 0)
        return -1;
    api_current = c;
    return 0;
}
