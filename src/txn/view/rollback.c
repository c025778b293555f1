/* Rollback copies home's contents back to all that the open transaction stored to: listed pages as a whole,
 * and marked lines. With concurrent stores it closes the listed pages first, as a commit does. Then another
 * thread's store is undone, or waits for the page lock until the rollback is over. */
#include "txn/txn.h"

#include "address/translation.h"
#include "base/error.h"

#include <string.h>

/* Neighbours that are restored together: the fewer, the more system calls; the more, the longer they are open
 * to other threads. */
#define RUN_MAX 64

/* Call `visit` for everything that the transaction stored to, as whole pages, lines, or runs of lines. */
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
    for (uint64_t i = 0; i < k->object_count && error == 0; i++)
        error = visit(t, run_line(k->objects[i]) * PM_LINE, run_count(k->objects[i]) * PM_LINE);
    return error;
}

/* Open all pages first, which can fail. Then restore them, which cannot fail, unless the pages need more
 * maps than the kernel allows. In this case some pages have been closed again, restoring stops, and the
 * next rollback restores the rest. */
static int restore_all(struct txn *t)
{
    int error = for_each_range(t, view_open_range);
    return error == 0 ? for_each_range(t, view_restore) : error;
}

/* Make pages equal to home that are closed, and leave them closed. While they are open to be restored, other
 * threads may store to them. These stores are undone too. If one of them were kept, a later store of its
 * thread might be undone on another page. A thread seldom disturbs twice: its next store to a closed page
 * waits. */
static int restore_closed(struct txn *t, uint32_t first, uint32_t count)
{
    uint64_t offset = (uint64_t)first << PM_PAGE_SHIFT, bytes = (uint64_t)count << PM_PAGE_SHIFT;
    int error;
    if (t->translation) /* made again at the next access */
        return translation_forget(t->translation, first, count);
    do {
        error = pages_open(&t->pages, first, count);
        if (error == 0)
            error = view_restore(t, offset, bytes);
        if (error == 0)
            error = pages_close(&t->pages, first, count);
    } while (error == 0 && memcmp(t->c->base + offset, t->c->home + offset, bytes) != 0);
    return error;
}

/* All stores are to listed pages, since marks exclude concurrent stores. Restore neighbours together. */
static int restore_beside_stores(struct txn *t)
{
    const struct pages *p = &t->pages;
    int error = pages_close_listed(&t->pages);
    for (uint32_t i = 0, n; i < p->count && error == 0; i += n) {
        uint32_t first = p->opened[i].page;
        for (n = 1; n < RUN_MAX && i + n < p->count && p->opened[i + n].page == first + n;)
            n++;
        error = restore_closed(t, first, n);
    }
    return error;
}

int view_rollback(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int error = t->concurrent ? restore_beside_stores(t) : restore_all(t);
    if (error == 0) {
        tracker_clear(&t->tracker, &t->pages);
        journal_rollback(&t->journal);
        t->free_hint = 0;
        pages_sort(&t->pages);
        for (uint32_t i = 0; i < t->pages.count; i++)
            t->pages.opened[i].changed = false; /* nothing has changed */
        view_cool_pages(t);
        view_evict(t);
    }
    lock_release_masked(&t->lock, &saved);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot open a page to restore it", t->c->path);
    return 0;
}
