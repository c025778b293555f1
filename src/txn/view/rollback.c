/* Rollback copies home's contents back to all that the open transaction stored to: listed pages as a whole,
 * and marked lines. */
#include "txn/txn.h"

#include "base/error.h"

/* Call `visit` for everything that the transaction stored to, as whole pages or lines. */
static int for_each_range(struct txn *t,
                          int (*visit)(struct txn *t, uint64_t offset, uint64_t bytes))
{
    const struct tracker *k = &t->tracker;
    int error = 0;
    for (uint32_t i = 0; i < t->pages.count && error == 0; i++)
        error = visit(t, (uint64_t)t->pages.opened[i].page << PM_PAGE_SHIFT, PM_PAGE);
    for (uint64_t i = 0, n = k->count; i < n && error == 0; i++)
        if (line_is_marked(t->c, k->marked[i]))
            error = visit(t, k->marked[i] * PM_LINE, PM_LINE);
    return error;
}

/* Open all pages first, which can fail. Then restore them, which cannot fail, unless the pages need more
 * maps than the kernel allows. In this case some pages have been closed again, restoring stops, and the
 * next rollback restores the rest. */
int view_rollback(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int error = for_each_range(t, view_open_range);
    if (error == 0)
        error = for_each_range(t, view_restore);
    if (error == 0) {
        tracker_clear(&t->tracker, &t->pages);
        journal_rollback(&t->journal);
        t->free_hint = 0;
        pages_sort(&t->pages);
        for (uint32_t i = 0; i < t->pages.count; i++)
            t->pages.opened[i].changed = false; /* nothing has changed */
        if (!t->concurrent) /* else a thread may have stored since: the next commit compares the pages */
            view_cool_pages(t);
        view_evict(t);
    }
    lock_release_masked(&t->lock, &saved);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot open a page to restore it", t->c->path);
    return 0;
}
