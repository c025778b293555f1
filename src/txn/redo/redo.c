/* The redo engine between two commits: marks, faults, rollback; and waiting for the medium. */
#define _GNU_SOURCE
#include "txn/redo/redo.h"

#include "base/cancel.h"
#include "base/error.h"
#include "txn/recovery.h"
#include "txn/sums.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <time.h>

/* ---- tables ---------------------------------------------------------------------------------- */

static int redo_load(struct txn *t, const struct txn_options *options)
{
    struct tables *tables = &t->c->tables;
    struct redo *r = calloc(1, sizeof *r);
    if (!r)
        return pm__fail_system(ENOMEM, "%s: no memory for the redo engine", t->c->path);
    t->redo = r;
    *r = (struct redo){
        .changes = {.runs = tables_take(tables, tracker_marks_max(t->c) * sizeof *r->changes.runs),
                    .fresh =
                        tables_take(tables, tracker_marks_max(t->c) * sizeof *r->changes.fresh),
                    .clears = tables_take(tables, t->c->segments_max * sizeof *r->changes.clears)},
        .private_max = options->private_max >> PM_PAGE_SHIFT,
        .committed = t->epoch - 1,
        .durable = t->epoch - 1,
        .proved = t->epoch - 1,
        .home = t->epoch - 1,
        .sync_lock = PTHREAD_MUTEX_INITIALIZER,
        .synced = PTHREAD_COND_INITIALIZER,
    };
    if (redo_on_file(t)) {
        r->private_max /= 2; /* a page has two copies there, in view and home */
        queue_forget(&t->c->medium, t->c->home, container_bytes(t->c)); /* queued by recovery */
        queue_set_epoch(&t->c->medium, t->epoch);
    }
    return redo_log_load(t);
}

static void redo_unload(struct txn *t)
{
    struct redo *r = t->redo;
    if (!r)
        return;
    redo_log_unload(t);
    pthread_mutex_destroy(&r->sync_lock);
    pthread_cond_destroy(&r->synced);
    free(r);
    t->redo = NULL;
}

/* ---- stores ---------------------------------------------------------------------------------- */

static int redo_open_page(struct txn *t, uint32_t page)
{
    return redo_open(t, page, true);
}

static int redo_open_marked(struct txn *t, uint32_t page)
{
    return redo_open(t, page, false);
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
            error = redo_open(t, page, !t->tracker.stores);
    lock_release_masked(&t->lock, &saved);
    return error;
}

/* If all pages are open, do not take the lock. Its two system calls would be most of the cost where
 * stores are announced by hand. */
static int redo_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint32_t first = (uint32_t)(offset >> PM_PAGE_SHIFT);
    uint32_t last = (uint32_t)((offset + bytes - 1) >> PM_PAGE_SHIFT);
    return all_open(t, first, last) ? 0 : open_all(t, first, last);
}

/* The most bytes of a record that a page can take. In the worst case all lines changed, and no logged
 * lines are adjacent. Lines that hold nothing committed go straight home, and the record has at most one
 * range for every second line. */
static uint64_t most_bytes(struct txn *t, uint32_t page)
{
    const uint64_t logged = sizeof(uint64_t) + PM_LINE;
    uint64_t before = t->upcalls.page_liveness(t->upcalls.context, page).before;
    if (t->moved)
        return PM_PAGE_LINES * logged;
    if (redo_on_file(t))
        return before ? PM_PAGE_LINES * logged
                      : PM_PAGE_LINES / 2 * logged; /* if dense, the page is fresh as a whole */
    uint64_t old = (uint64_t)__builtin_popcountll(before);
    return old * logged +
           min_u64(PM_PAGE_LINES - old, PM_PAGE_LINES / 2) * sizeof(struct redo_fresh);
}

/* Words of the pointer map that cover a page. */
#define MAP_WORDS_OF_PAGE (PM_PAGE / MAP_WORD_BYTES + 2)

/* Reserve log for everything the transaction stored to so far, for `pages` more pages, and for their
 * journaled words. */
static int redo_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words)
{
    (void)extra_pages; /* these pages are marked or listed, and counted as such */
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    struct journal_counts counts = journal_count(&t->journal);
    uint64_t lines = t->tracker.count + pages * PM_PAGE_LINES, listed = 0;
    for (uint32_t i = 0; i < t->pages.count; i++)
        listed += most_bytes(t, t->pages.opened[i].page);
    uint64_t words = counts.words + extra_words + log_segments(&t->log);
    if (t->tracker.kinds) /* words of the pointer map: one a line, or a few a page */
        words += t->tracker.count + (pages + t->pages.count) * MAP_WORDS_OF_PAGE;
    int error =
        redo_log_reserve(t, listed + redo_stream_bytes(counts.clears, words, 0, lines, lines));
    lock_release_masked(&t->lock, &saved);
    return error;
}

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
static int redo_rollback(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int error = for_each_range(t, redo_open_range);
    if (error == 0)
        error = for_each_range(t, redo_restore);
    if (error == 0) {
        tracker_clear(&t->tracker, &t->pages);
        journal_rollback(&t->journal);
        t->free_hint = 0;
        pages_sort(&t->pages);
        for (uint32_t i = 0; i < t->pages.count; i++)
            t->pages.opened[i].changed = false; /* nothing has changed */
        redo_cool_pages(t);
        redo_evict(t);
    }
    lock_release_masked(&t->lock, &saved);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot open a page to restore it", t->c->path);
    return 0;
}

/* ---- durability ------------------------------------------------------------------------------ */

/* If a round takes no longer, followers wait for it without sleeping. No leader waits longer for other
 * threads. */
#define SHORT_ROUND_NS 100000

enum round {
    ROUND_NOW,    /* the caller holds the page lock, so nobody can join */
    ROUND_SHARED, /* for a commit: other threads may join */
    ROUND_AGAIN,  /* at least one round, whatever is durable already */
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Spin without the sync lock until `is_so()` is false or `ns` nanoseconds have passed. Sleeping and
 * waking would take longer than the expected wait. The caller holds the sync lock. */
static void stay_awake(struct redo *r, bool (*is_so)(const struct redo *r), uint64_t ns)
{
    uint64_t until = now_ns() + ns;
    pthread_mutex_unlock(&r->sync_lock);
    while (is_so(r) && now_ns() < until)
        sched_yield();
    pthread_mutex_lock(&r->sync_lock);
}

static bool lacks_company(const struct redo *r)
{
    return atomic_load(&r->arrived) < r->company;
}

static bool is_syncing(const struct redo *r)
{
    return atomic_load(&r->syncing);
}

/* Wait while another thread leads a round. If rounds are short, spin. Then followers return as soon as
 * their leader does, and in time for the next round. */
static void follow(struct redo *r)
{
    UNCANCELLED;
    if (r->round_ns <= SHORT_ROUND_NS)
        stay_awake(r, is_syncing, 2 * SHORT_ROUND_NS);
    if (r->syncing)
        pthread_cond_wait(&r->synced, &r->sync_lock);
}

/*
 * Lead one round for all waiting threads. Only on a file threads wait. The caller holds the sync lock; it
 * is released during the round.
 *
 * A thread that commits again and again is about to come back when a round has ended, and would just miss
 * the next round. Two such threads would take turns and share nothing. So the leader first waits until as
 * many threads have arrived as the last round served or kept waiting. It waits at most half as long as
 * the last round took.
 */
static int lead(struct txn *t, enum round round)
{
    struct redo *r = t->redo;
    r->syncing = true;
    if (round == ROUND_SHARED && lacks_company(r))
        stay_awake(r, lacks_company, min_u64(r->round_ns / 2, SHORT_ROUND_NS));
    uint32_t served = atomic_exchange(&r->arrived, 0);
    pthread_mutex_unlock(&r->sync_lock);
    uint64_t started = now_ns();
    uint64_t committed = atomic_load(&r->committed);
    /* R12: epochs up to it are home, and a record that this round makes durable calls them durable. */
    uint64_t home = min_u64(queue_floor(&t->c->medium), atomic_load(&r->proved));
    int error = medium_fence(&t->c->medium);
    pthread_mutex_lock(&r->sync_lock);
    r->syncing = false;
    r->round_ns = now_ns() - started;
    r->company = served + atomic_load(&r->arrived);
    if (error == 0) {
        atomic_store(&r->durable, committed);
        atomic_store(&r->home, home);
    }
    pthread_cond_broadcast(&r->synced);
    return error;
}

static int sync_until(struct txn *t, uint64_t epoch, enum round round)
{
    struct redo *r = t->redo;
    int error = 0;
    pthread_mutex_lock(&r->sync_lock);
    atomic_fetch_add(&r->arrived, 1);
    while ((error = medium_failed(&t->c->medium)) == 0 &&
           (round == ROUND_AGAIN || atomic_load(&r->durable) < epoch)) {
        if (r->syncing) {
            follow(r);
        } else {
            error = lead(t, round);
            round = ROUND_NOW;
        }
    }
    pthread_mutex_unlock(&r->sync_lock);
    return error;
}

static bool is_durable(const struct txn *t, uint64_t epoch)
{
    return atomic_load_explicit(&t->redo->durable, memory_order_acquire) >= epoch;
}

int redo_sync(struct txn *t, uint64_t epoch)
{
    return is_durable(t, epoch) ? 0 : sync_until(t, epoch, ROUND_NOW);
}

int redo_fence(struct txn *t)
{
    return sync_until(t, 0, ROUND_AGAIN);
}

static int redo_wait(struct txn *t, uint64_t epoch)
{
    if (epoch > atomic_load(&t->redo->committed))
        return pm__fail(EINVAL, "%s: the ticket is of no commit of this container", t->c->path);
    bool done = is_durable(t, epoch) || sync_until(t, epoch, ROUND_SHARED) == 0;
    return done ? 0 : txn_check_medium(t);
}

static int redo_close(struct txn *t)
{
    redo_write_back(t);
    (void)redo_sync(t, t->epoch - 1);
    return txn_check_medium(t); /* the medium may have failed with more than the awaited records */
}

static int redo_drain(struct txn *t)
{
    if (redo_on_file(t))
        return redo_log_drain(t);
    uint64_t committed = atomic_load(&t->redo->committed);
    redo_write_back(t);
    int error = sums_publish(t, committed);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error == 0)
        error = publish_base_epoch(t, committed);
    if (error == 0)
        error = medium_fence(&t->c->medium);
    if (error == 0)
        atomic_store(&t->redo->home, committed);
    return error;
}

static void redo_restart(struct txn *t)
{
    t->redo->log.segment = t->log.half[0].segments[0];
    t->redo->log.end = 0;
}

const struct engine engine_redo = {
    .name = "redo",
    .in_place = false,
    .load = redo_load,
    .unload = redo_unload,
    .adopt = redo_adopt,
    .open_page = redo_open_page,
    .open_marked = redo_open_marked,
    .dirty = redo_dirty,
    .reserve = redo_reserve,
    .commit = redo_commit,
    .wait = redo_wait,
    .rollback = redo_rollback,
    .close = redo_close,
    .drain = redo_drain,
    .restart = redo_restart,
};
