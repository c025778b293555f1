/* Copies. */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "txn/copy.h"

#include <errno.h>

int pm_copy(pm_container *c, const char *path, pm_progress *progress, void *context)
{
    DEFER_CANCELLATION;
    UNCANCELLED;
    if (api_enter(c) != 0)
        return -1;
    if (!path)
        return pm__fail(EINVAL, "%s: the path of the copy is NULL", c->container.path);
    return txn_copy(&c->txn, path, progress, context);
}
