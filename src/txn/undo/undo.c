/*
 * The undo engine between two commits: serving first stores, and rollback. As in LIBPM (Marmol 2017,
 * section 6.3), a page is copied to the log when it is first stored to. This is necessary because the
 * view is home, and the medium may keep any store at any time.
 */
#include "txn/undo/undo.h"
#include "txn/recovery.h"
#include "txn/sums.h"

#include "base/checksum.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>

/* If stores run on from page to page, one fault opens at most this many pages. */
#define WINDOW_MAX 32

static bool needs_image(const struct txn *t, uint32_t page)
{
    return !(t->pages.flags[page] & (PAGE_OPEN | PAGE_LOGGED | PAGE_FRESH));
}

static void log_image(struct txn *t, uint32_t page)
{
    const char *contents = page_home(&t->pages, page);
    uint64_t sum = checksum(contents, PM_PAGE, t->c->seed);
    uint32_t slot = t->log.half[t->epoch % 2].next++;
    log_write_image(&t->log, slot, t->epoch, page, contents, sum);
    page_set(&t->pages, page, PAGE_LOGGED);
    pages_list(&t->pages, (struct page_entry){.page = page, .slot = slot, .sum = sum});
    t->pages_logged++;
}

/* Log the pages of [first, first + count) that need an image, fence once, open all pages. The page lock
 * is held. */
static int log_and_open(struct txn *t, uint32_t first, uint32_t count)
{
    uint32_t images = 0;
    for (uint32_t page = first; page < first + count; page++)
        images += needs_image(t, page);
    unsigned half = t->epoch % 2;
    int error = segments_grow_log(t, half, (uint64_t)t->log.half[half].next + images);
    if (error != 0)
        return error;
    for (uint32_t page = first; page < first + count; page++) {
        if (needs_image(t, page))
            log_image(t, page);
        else if (t->concurrent)
            pages_list_once(&t->pages, page, false); /* so that commit can close it */
    }
    if (images > 0) {
        medium_fence(&t->c->medium);
        undo_note_images(t);
    }
    return pages_open(&t->pages, first, count);
}

static int undo_open_page(struct txn *t, uint32_t page)
{
    struct pages *p = &t->pages;
    uint32_t least = 1, most = t->reserved ? 1 : WINDOW_MAX;
    if (p->flags[page] & PAGE_FRESH && !t->concurrent)
        least = most = pages_per_segment(t->c); /* a fresh page costs no image and no fence */
    uint32_t count = pages_window(p, page, least, most, 1).count; /* each costs an image */
    int error = log_and_open(t, page, count);
    return error == 0 || count == 1 ? error : log_and_open(t, page, 1); /* one page may still fit */
}

/* Called without the lock. If another thread closes a page meanwhile, a store to it faults as usual. */
static bool are_open(const struct txn *t, uint32_t first, uint32_t last)
{
    uint32_t page = first;
    while (page <= last && __atomic_load_n(&t->pages.flags[page], __ATOMIC_RELAXED) & PAGE_OPEN)
        page++;
    return page > last;
}

static int undo_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint32_t first = (uint32_t)(offset >> PM_PAGE_SHIFT);
    uint32_t last = (uint32_t)((offset + bytes - 1) >> PM_PAGE_SHIFT);
    if (are_open(t, first, last)) /* pages of new objects usually are */
        return 0;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int error = 0;
    for (uint32_t page = first; page <= last && error == 0; page++)
        if ((t->pages.flags[page] & (PAGE_OPEN | PAGE_FRESH)) == PAGE_FRESH)
            error = undo_open_page(t, page); /* and the fresh pages around it */
    if (error == 0 && !are_open(t, first, last))
        error = log_and_open(t, first, last - first + 1);
    lock_release_masked(&t->lock, &saved);
    return error;
}

/* Segments that a half of the log lacks to hold `slots` slots. */
static uint64_t missing(const struct txn *t, unsigned half, uint64_t slots)
{
    uint64_t wanted = divide_up(slots, t->log.segment_slots), count = t->log.half[half].count;
    return wanted > count ? wanted - count : 0;
}

/* Slots of a record that lists `pages` pages. Each segment of its half may make the record a word longer,
 * even a segment that is still missing. */
static uint64_t record_slots(const struct txn *t, unsigned half, uint64_t pages, uint64_t words)
{
    struct journal_counts counts = journal_count(&t->journal);
    uint64_t segments = t->log.half[half].count, before, slots;
    do {
        before = segments;
        slots = log_record_slots(
            log_record_bytes(counts.clears, counts.words + words + segments, pages));
        segments = t->log.half[half].count + missing(t, half, slots);
    } while (segments != before);
    return slots;
}

static int undo_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    unsigned now = t->epoch % 2, next = !now;
    uint64_t slots_now = t->log.half[now].next + pages;
    uint64_t slots_next = record_slots(t, next, t->pages.count + pages + extra_pages, extra_words);
    uint32_t count_now = t->log.half[now].count, segments = atomic_load(&t->c->segments);
    /* Make room for both first. With room for only one, nothing is reserved. */
    int error = segments_make_room(t, missing(t, now, slots_now) + missing(t, next, slots_next));
    if (error == 0)
        error = segments_grow_log(t, now, slots_now);
    if (error == 0 && (error = segments_grow_log(t, next, slots_next)) != 0)
        segments_unclaim_log(t, now, count_now);
    if (error != 0)
        txn_cut_tail(t, segments);
    t->reserved |= error == 0;
    lock_release_masked(&t->lock, &saved);
    return error;
}

/* After a rollback a fresh page holds nothing again, and its segment may go to any owner. So close these
 * pages. With concurrent stores close all pages: a store of another thread is then undone, or waits for the
 * page lock until the rollback is over. Nothing else in a rollback can fail, and closing changes nothing for
 * the transaction. */
static int close_before_rollback(struct txn *t)
{
    struct pages *p = &t->pages;
    int error = t->concurrent ? pages_close_listed(p) : 0;
    for (uint32_t i = 0; i < p->count && error == 0; i++)
        if (p->opened[i].slot == SLOT_NONE && p->flags[p->opened[i].page] & PAGE_OPEN)
            error = pages_close(p, p->opened[i].page, 1);
    return error;
}

/*
 * Copy the images and the journaled words back, and stay in the epoch (U7). The pages stay listed and
 * LOGGED, because their images are still the images of the epoch's start. The restored lines may be in
 * the cache only. The next commit writes these pages back whole, as it does with all opened pages.
 */
static void roll_back(struct txn *t)
{
    struct pages *p = &t->pages;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        struct page_entry *entry = &p->opened[i];
        if (entry->slot != SLOT_NONE) {
            memcpy(page_home(p, entry->page), log_slot(&t->log, t->epoch % 2, entry->slot),
                   PM_PAGE);
            p->opened[kept++] = *entry;
            continue;
        }
        page_clear(p, entry->page, PAGE_LISTED);
    }
    p->count = kept;
    t->note_count = 0;
    journal_rollback(&t->journal);
    t->free_hint = 0;
}

static int undo_rollback(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int error = close_before_rollback(t);
    if (error == 0)
        roll_back(t);
    lock_release_masked(&t->lock, &saved);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot protect a page", t->c->path);
    return 0;
}

/* Undo needs no state besides what every transaction has. */
static int undo_load(struct txn *t, const struct txn_options *options)
{
    (void)t, (void)options;
    return 0;
}

static void undo_unload(struct txn *t)
{
    (void)t;
}

/* Fresh pages need no image, so open them at once. Not with concurrent stores: each commit would have to
 * close them. */
static int undo_adopt(struct txn *t, uint32_t first, uint32_t count, uint32_t header)
{
    if (t->concurrent)
        return 0;
    int error = pages_open(&t->pages, first + header, count - header);
    map_populate(&t->c->medium, t->c->base + ((uint64_t)(first + header) << PM_PAGE_SHIFT),
                 (size_t)(count - header) << PM_PAGE_SHIFT);
    return error;
}

/* The commit itself has waited. */
static int undo_wait(struct txn *t, uint64_t epoch)
{
    (void)t, (void)epoch;
    return 0;
}

static int undo_close(struct txn *t)
{
    /* Hot pages were never written back home (U8), so write them back now. */
    for (uint32_t i = 0; i < t->pages.count; i++)
        medium_write_back(&t->c->medium, page_home(&t->pages, t->pages.opened[i].page), PM_PAGE);
    return 0;
}

static int undo_drain(struct txn *t)
{
    (void)undo_close(t);
    int error = sums_publish(t, t->epoch - 1);
    if (error == 0)
        error = medium_settle(&t->c->medium);
    return error == 0 ? raise_base_epoch(t, t->epoch) : error;
}

const struct engine engine_undo = {
    .name = "undo",
    .log_bit = 0,
    .recover = undo_recover,
    .in_place = true,
    .load = undo_load,
    .unload = undo_unload,
    .adopt = undo_adopt,
    .open_page = undo_open_page,
    .dirty = undo_dirty,
    .reserve = undo_reserve,
    .commit = undo_commit,
    .wait = undo_wait,
    .rollback = undo_rollback,
    .close = undo_close,
    .end = txn_end_home,
    .drain = undo_drain,
};
