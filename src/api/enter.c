/* Checks that every public function makes first. */
#include "api/api.h"

#include "base/error.h"
#include "pages/fault.h"

#include <errno.h>

int api_enter_process(void)
{
    if (fault_in_child())
        return pm__fail(ECHILD, "libpm is switched off in a child of fork(); call exec() first");
    return 0;
}

int api_enter(const pm_container *c)
{
    if (api_enter_process() != 0)
        return -1;
    if (!c)
        return pm__fail(EINVAL, "the container is NULL; did pm_open() fail?");
    return 0;
}

int api_enter_writing(const pm_container *c)
{
    if (api_enter(c) != 0)
        return -1;
    if (c->container.readonly)
        return pm__fail(EROFS, "%s: opened with PM_READONLY", c->container.path);
    return txn_check_medium((struct txn *)&c->txn);
}

pm_container *owner_of(const void *p)
{
    if (api_enter_process() != 0)
        return NULL;
    pm_container *c = (pm_container *)arena_find(p);
    return c && container_holds(&c->container, p)
               ? c
               : pm__fail_null(EINVAL, "%p is in no open container", p);
}
