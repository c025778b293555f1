/*
 * Pages of the private view. The view reads a page through to the file until the program stores to it.
 * From then on the page has a copy in this process. Copies cost memory, so libpm gives some back when
 * there are too many.
 *
 * The clock chooses them: it spares a page whose byte of heat is set. Marks and commits set the byte, and
 * the clock's hand clears it.
 */
#define _GNU_SOURCE
#include "txn/txn.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* If stores run on from page to page, one store opens at most this many pages. */
#define WINDOW_MAX 32
/* When marks have opened this many runs of pages, libpm closes all of them. Each run may cost two of the
 * kernel's 65,530 maps, and the program needs some maps too. A closed page keeps its copy. From then on
 * a run is WIDER times as long, so that fewer runs cover what the program stores to. The kernel makes the
 * copies of a run of RUN_MAX pages in about 0.2 ms. */
#define OPENS_MAX 8192
#define WIDER     4
#define RUN_MAX   256
/* Eviction goes on until 1/EVICT_SHARE below the limit, so that not every commit needs it. On a file each
 * eviction first waits for the disk. On pmem it waits for nothing, so it may come often, and be short. */
#define EVICT_SHARE_FILE 8
#define EVICT_SHARE_PMEM 64

/* At most HOT_MAX pages stay open and listed across a commit, and at most 1/HOT_SHARE of `private_max`. */
#define HOT_MAX   1024
#define HOT_SHARE 4

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

void view_load(struct txn *t, uint64_t private_max)
{
    struct tables *tables = &t->c->tables;
    struct changes *ch = &t->view.changes;
    t->view = (struct view){.private_max = private_max >> PM_PAGE_SHIFT, .run = 1};
    ch->runs = tables_take(tables, tracker_marks_max(t->c) * sizeof *ch->runs);
    ch->changed = tables_take(tables, tracker_marks_max(t->c));
    ch->fresh = tables_take(tables, tracker_marks_max(t->c) * sizeof *ch->fresh);
    t->view.clears = tables_take(tables, t->c->segments_max * sizeof *t->view.clears);
}

static char *view(const struct txn *t, uint32_t page)
{
    return t->c->base + ((uint64_t)page << PM_PAGE_SHIFT);
}

static void set_private(struct txn *t, uint32_t page)
{
    if (!(t->pages.flags[page] & (PAGE_PRIVATE | PAGE_TRANSLATED)))
        t->pages.private_count++;
    page_set(&t->pages, page, PAGE_PRIVATE);
}

/* In a translated container, make the page before a store to it. */
static int make_if_translated(struct txn *t, uint32_t page)
{
    return t->translation && !(t->pages.flags[page] & PAGE_TRANSLATED)
               ? translation_touch(t->translation, page)
               : 0;
}

/* Pages to open with `page`, which is data: up to a multiple of the run's length, as all runs are, or to the
 * segment's end. */
static uint32_t run_from(const struct txn *t, uint32_t page)
{
    uint32_t run = min_u64(t->view.run, pages_per_segment(t->c));
    return run - page % run;
}

/* Open `page` for a store, and perhaps pages after it. `compare`: list all these pages, because nobody
 * marks the stores to them. Otherwise a page after it may be open without a copy, until it is marked itself:
 * it can be open already. */
static int view_open(struct txn *t, uint32_t page, bool compare)
{
    if (t->pages.flags[page] & PAGE_OPEN) {
        set_private(t, page);
        return 0;
    }
    int error = make_if_translated(t, page);
    if (error != 0)
        return error;
    bool alone = compare || t->translation; /* pages that must be listed, or made, one by one */
    uint32_t least = alone ? 1 : run_from(t, page);
    struct page_window window = pages_window(
        &t->pages, page, least, max_u64(least, WINDOW_MAX), compare ? 1 : PAGE_STREAMS);
    error = pages_open(&t->pages, page, window.count);
    t->view.opens++;
    /* Stores to the rest of a run may never come, so that these pages have no copies yet. They do come if
     * they have come to the last page of the run before. */
    bool goes_on = window.runs_on && page_has(&t->pages, page - 1, PAGE_PRIVATE | PAGE_TRANSLATED);
    uint32_t copies = compare || goes_on ? window.count : 1;
    for (uint32_t i = page; i < page + copies && error == 0; i++) {
        set_private(t, i);
        if (compare)
            pages_list_once(&t->pages, i, false);
    }
    /* Stores run on from page to page: let the kernel make all copies in one call instead of one fault
     * each. */
    if (error == 0 && copies > 1)
        madvise(view(t, page), (size_t)copies << PM_PAGE_SHIFT, MADV_POPULATE_WRITE);
    return error;
}

int view_open_page(struct txn *t, uint32_t page)
{
    return view_open(t, page, true);
}

int view_open_marked(struct txn *t, uint32_t page)
{
    return view_open(t, page, false);
}

static bool all_open(struct txn *t, uint32_t first, uint32_t last)
{
    while (first <= last && page_has(&t->pages, first, PAGE_OPEN))
        first++;
    return first > last;
}

static int open_all(struct txn *t, uint32_t first, uint32_t last)
{
    int error = 0;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    for (uint32_t page = first; page <= last && error == 0; page++)
        if (!(t->pages.flags[page] & PAGE_OPEN))
            error =
                t->tracker.stores ? t->engine->open_marked(t, page) : t->engine->open_page(t, page);
    lock_release_masked(&t->lock, &saved);
    return error;
}

/* If all pages are open, do not take the lock. Its two system calls would be most of the cost where
 * stores are announced by hand. */
int view_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint32_t first = (uint32_t)(offset >> PM_PAGE_SHIFT);
    uint32_t last = (uint32_t)((offset + bytes - 1) >> PM_PAGE_SHIFT);
    return all_open(t, first, last) ? 0 : open_all(t, first, last);
}

int view_open_range(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint32_t first = (uint32_t)(offset >> PM_PAGE_SHIFT);
    uint32_t last = (uint32_t)((offset + bytes - 1) >> PM_PAGE_SHIFT);
    for (uint32_t page = first; page <= last; page++) {
        bool is_open = t->pages.flags[page] & PAGE_OPEN;
        int error = is_open ? 0 : make_if_translated(t, page);
        if (!is_open && error == 0)
            error = pages_open(&t->pages, page, 1);
        if (error != 0)
            return error;
        set_private(t, page);
    }
    return 0;
}

int view_restore(struct txn *t, uint64_t offset, uint64_t bytes)
{
    int error = view_open_range(t, offset, bytes);
    if (error == 0 && t->translation)
        translation_restore(t->translation, offset, bytes);
    else if (error == 0)
        memcpy(t->c->base + offset, t->c->home + offset, bytes);
    return error;
}

int view_adopt(struct txn *t, uint32_t first, uint32_t count, uint32_t header)
{
    struct medium *medium = &t->c->medium;
    /* R14: the bitmap of a new slab is cleared in home at once, and may reach the file with a queued
     * page. None of these pages is open. */
    for (uint32_t page = first; medium->queue && page < first + header; page++)
        if (queue_holds(medium, page_home(&t->pages, page))) {
            int error = rounds_sync(t, atomic_load(&t->rounds.committed));
            if (error != 0)
                return error;
            break;
        }
    /* The kernel refuses MADV_DONTNEED for locked memory. In a translated container the pages stay. Commit
     * looks at lines that this transaction marked on them, and nothing would make a dropped page again
     * for commit. */
    bool dropped = !t->translation &&
                   madvise(view(t, first), (size_t)count << PM_PAGE_SHIFT, MADV_DONTNEED) == 0;
    for (uint32_t page = first; page < first + count; page++) {
        bool copied = t->pages.flags[page] & (PAGE_PRIVATE | PAGE_TRANSLATED);
        bool queued = medium->queue && queue_holds(medium, page_home(&t->pages, page));
        if (copied && dropped) {
            t->pages.private_count--;
            page_clear(&t->pages, page, PAGE_PRIVATE);
        }
        /* Home may be newer than the file here. Copy home's contents to the view instead of reading the
         * file. */
        if ((copied && !dropped) || (queued && !t->translation)) {
            int error = view_restore(t, (uint64_t)page << PM_PAGE_SHIFT, PM_PAGE);
            if (error == 0)
                error = pages_close(&t->pages, page, 1);
            if (error != 0)
                return error;
        } else if (medium->queue && !queued) {
            queue_forget(medium, page_home(&t->pages, page), PM_PAGE);
        }
    }
    return 0;
}

/* True if the clock may take this page: the private copy has nothing that is nowhere else. */
static bool evictable(struct txn *t, uint32_t page)
{
    uint8_t flags = t->pages.flags[page];
    if (!(flags & (PAGE_PRIVATE | PAGE_TRANSLATED)) || flags & PAGE_LISTED)
        return false;
    if (t->pages.heat[page] != 0) {
        t->pages.heat[page] = 0;
        return false;
    }
    return !t->c->medium.queue || !queue_holds(&t->c->medium, page_home(&t->pages, page));
}

/* Make the view read these pages through to the file again. */
static int drop(struct txn *t, uint32_t first, uint32_t count)
{
    int error = pages_close(&t->pages, first, count);
    if (error != 0)
        return error;
    if (madvise(view(t, first), (size_t)count << PM_PAGE_SHIFT, MADV_DONTNEED) != 0)
        return -errno;
    for (uint32_t page = first; page < first + count; page++)
        page_clear(&t->pages, page, PAGE_PRIVATE);
    t->pages.private_count -= count;
    return 0;
}

static int evict_run(struct txn *t, uint32_t first, uint32_t count)
{
    int error =
        t->translation ? translation_forget(t->translation, first, count) : drop(t, first, count);
    if (error != 0)
        return error;
    if (t->c->medium.queue)
        queue_forget(&t->c->medium, page_home(&t->pages, first), (size_t)count << PM_PAGE_SHIFT);
    t->pages.evicted += count;
    return 0;
}

static bool entry_stays_open(const struct page_entry *entry)
{
    return entry->fate != PAGE_CLOSES;
}

void view_cool_pages(struct txn *t)
{
    struct pages *p = &t->pages;
    if (p->count == 0)
        return;
    uint32_t hot = 0, kept = 0, peak = p->count;
    uint64_t most = min_u64(HOT_MAX, t->view.private_max / HOT_SHARE);
    for (uint32_t i = 0; i < p->count; i++) {
        struct page_entry *e = &p->opened[i];
        bool may = p->flags[e->page] & PAGE_OPEN && segments_page_is_data(t, e->page);
        if (may && t->tracker.stores && e->announced) {
            e->fate = PAGE_STAYS_OPEN;
        } else {
            bool stays =
                pages_stay_hot(p, e->page, e->changed) && may && !t->concurrent && hot < most;
            e->fate = stays ? PAGE_STAYS_LISTED : PAGE_CLOSES;
            hot += stays;
        }
    }
    bool closed = pages_close_sorted(p, p->opened, p->count, entry_stays_open) == 0;
    for (uint32_t i = 0; i < peak; i++) {
        bool refused =
            !closed && p->opened[i].fate == PAGE_CLOSES && p->flags[p->opened[i].page] & PAGE_OPEN;
        if (p->opened[i].fate == PAGE_STAYS_LISTED || refused)
            p->opened[kept++] = p->opened[i];
        else
            page_clear(p, p->opened[i].page, PAGE_LISTED);
    }
    p->count = kept;
    pages_trim(p, peak);
}

void view_merge_maps(struct txn *t)
{
    if (t->view.opens < OPENS_MAX)
        return;
    while (pages_evict(&t->pages) > 0)
        ;
    t->view.opens = 0;
    if (t->view.run < RUN_MAX)
        t->view.run *= WIDER;
}

void view_evict(struct txn *t)
{
    struct view *v = &t->view;
    if (t->pages.private_count <= v->private_max)
        return;
    /* A page that is not in the file must stay in memory, and a page that is not durable must not go to
     * the file. If the sync or the write fails, the next commit meets the same error and reports it. */
    uint64_t committed = atomic_load(&t->rounds.committed);
    if (t->c->medium.queue &&
        (rounds_sync(t, committed) != 0 || queue_write(&t->c->medium, UINT64_MAX, committed) < 0))
        return;
    /* One page of the table of marks covers 256 KiB of data, and little of it may be in use. */
    tracker_trim(&t->tracker, t->c);
    uint64_t share = t->c->medium.queue ? EVICT_SHARE_FILE : EVICT_SHARE_PMEM;
    uint64_t keep = v->private_max - v->private_max / share;
    uint32_t end = (uint32_t)(container_bytes(t->c) >> PM_PAGE_SHIFT);
    uint64_t budget = 2 * (uint64_t)end; /* in the first round the hand only clears heat */
    while (t->pages.private_count > keep && budget > 0) {
        uint32_t page = v->hand < end ? v->hand : 0, run = 0;
        while (page + run < end && run < budget && t->pages.private_count - run > keep &&
               evictable(t, page + run))
            run++;
        if (run > 0 && evict_run(t, page, run) != 0)
            return;
        uint32_t step = run > 0 ? run : 1;
        v->hand = page + step;
        budget -= step;
    }
}
