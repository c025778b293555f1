/*
 * Faults. A store to a closed page opens the page, as the engine does it. A load of a page that must be
 * translated makes the page. The handler calls, so nothing here formats text or allocates memory, and what
 * cannot be served ends the process.
 */
#include "txn/txn.h"

#include "base/panic.h"

#include <errno.h>

static bool serve_store(struct txn *t, uint64_t offset)
{
    uint32_t page = (uint32_t)(offset >> PM_PAGE_SHIFT);
    if (t->c->readonly || !segments_page_is_data(t, page))
        return false;
    if (t->pages.flags[page] & PAGE_OPEN) /* another thread was faster */
        return true;
    int error = t->engine->open_page(t, page);
    if (error == -ENOSPC && atomic_load(&t->c->at_max))
        panic(t->c->path, offset,
              "the container's max_size leaves no room to log the page of this store; the last "
              "commit stands. pm_reserve() reports this before the store",
              0);
    if (error == -ENOSPC || error == -EDQUOT)
        panic(t->c->path, offset,
              "no space to log the page of this store; the last commit stands. "
              "pm_reserve() reports this before the store",
              -error);
    if (error != 0)
        panic(t->c->path, offset,
              "cannot log and open the page of this store; the last commit stands", -error);
    t->faults++;
    return true;
}

static bool serve_load(struct txn *t, uint64_t offset)
{
    if (!t->translation || offset >= container_bytes(t->c))
        return false;
    int error = translation_touch(t->translation, (uint32_t)(offset >> PM_PAGE_SHIFT));
    if (error != 0)
        panic(
            t->c->path, offset,
            "cannot adjust the pointers of the page that is accessed here; the last commit stands",
            -error);
    t->touches++;
    return true;
}

bool txn_fault(struct txn *t, const void *address, bool store)
{
    uint64_t offset = (uint64_t)((const char *)address - t->c->base);
    lock_acquire(&t->lock);
    bool served = store ? serve_store(t, offset) : serve_load(t, offset);
    lock_release(&t->lock);
    return served;
}

int txn_touch(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint32_t page = (uint32_t)(offset >> PM_PAGE_SHIFT);
    uint32_t last = (uint32_t)((offset + bytes - 1) >> PM_PAGE_SHIFT);
    if (!t->translation || (page == last && page_has(&t->pages, page, PAGE_TRANSLATED)))
        return 0;
    int error = 0;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    for (; page <= last && error == 0; page++)
        if (!page_has(&t->pages, page, PAGE_TRANSLATED))
            error = translation_touch(t->translation, page);
    lock_release_masked(&t->lock, &saved);
    return error;
}
