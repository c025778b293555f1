/*
 * Commit of the undo engine: one round of write-backs, images for the next epoch, and the record that proves
 * they all arrived.
 *
 *   1  Compare each listed page with its image, by checksums. If no page and no journaled word has
 *      changed, the commit is done.
 *   2  Make room for the record. Nothing after this step returns an error.
 *   3  List the pages that became live. Take pages without an object off the list.
 *   4  Build the record. Choose the hot pages, and protect all others.
 *   5  Write back the protected pages. Write the hot pages to the log, as images of the next epoch. Write
 *      the record to the log.
 *   6  Fence: the round is complete.
 *   7  Bring the words home, for the next round. The hot pages are the next epoch's list.
 */
#include "txn/undo/undo.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/panic.h"
#include "txn/copy.h"
#include "txn/sums.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* At most this many pages stay open across a commit: 4 MiB of images. */
#define HOT_MAX 1024
/* Bytes of the record buffer that stay in memory between commits. */
#define RECORD_KEPT (64 * PM_PAGE)

static bool entry_changed(const struct page_entry *entry)
{
    return entry->slot == SLOT_NONE || entry->now != entry->sum;
}

static bool entry_is_kept(const struct page_entry *entry)
{
    return entry->slot != SLOT_NONE;
}

static void hash_entry(struct txn *t, struct page_entry *entry)
{
    entry->now = checksum(page_home(&t->pages, entry->page), PM_PAGE, t->c->seed);
}

/* True if any logged page differs from its image. Fills in the pages' checksums. */
static bool any_page_changed(struct txn *t)
{
    bool changed = false;
    for (uint32_t i = 0; i < t->pages.count; i++) {
        struct page_entry *entry = &t->pages.opened[i];
        if (entry->slot == SLOT_NONE)
            continue; /* fresh; if it were live now there would be a note */
        hash_entry(t, entry);
        changed |= entry_changed(entry);
    }
    return changed;
}

/* Apply the allocator's notes: a page that became live is listed, a page that died is fresh from now on. */
static void apply_notes(struct txn *t)
{
    struct pages *p = &t->pages;
    for (uint64_t i = 0; i < t->note_count; i++) {
        uint32_t page = t->notes[i].page;
        if (t->notes[i].live) {
            page_clear(p, page, PAGE_FRESH);
            pages_list_once(p, page, false);
        } else {
            page_set(p, page, PAGE_FRESH);
        }
    }
    t->note_count = 0;
    pages_sort(p);
}

/* Drop pages that hold nothing after this commit: U1 wants them not listed. */
static void drop_fresh(struct pages *p)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t page = p->opened[i].page;
        if (p->flags[page] & PAGE_FRESH)
            page_clear(p, page, PAGE_LISTED | PAGE_LOGGED);
        else
            p->opened[kept++] = p->opened[i];
    }
    p->count = kept;
}

/* True if the page of `entry` may stay open, with its next image in slot `slot`. */
static bool may_stay_open(struct txn *t, const struct page_entry *entry, uint32_t slot,
                          uint32_t hot)
{
    bool wanted = pages_stay_hot(&t->pages, entry->page, entry_changed(entry));
    return wanted && !t->concurrent && hot < HOT_MAX && t->pages.flags[entry->page] & PAGE_OPEN &&
           segments_grow_log(t, (t->epoch + 1) % 2, (uint64_t)slot + 1) == 0;
}

/* Decide which pages stay open, with images from `slot` on, and close all others. This comes before the
 * round: if the kernel refuses to close a page, the page can still be logged ahead. */
static void close_cold(struct txn *t, uint32_t slot)
{
    struct pages *p = &t->pages;
    uint32_t hot = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        struct page_entry *entry = &p->opened[i];
        bool stays = may_stay_open(t, entry, slot + hot, hot);
        entry->slot = stays ? slot + hot++ : SLOT_NONE;
    }
    (void)pages_close_sorted(p, p->opened, p->count, entry_is_kept);
}

/* The kernel refuses to protect a page. The only possible reason is one mapping too many. */
static _Noreturn void give_up(const struct txn *t, uint32_t page, int error)
{
    bool full = error == ENOSPC && atomic_load(&t->c->at_max);
    panic(t->c->path, (uint64_t)page << PM_PAGE_SHIFT,
          full ? "can neither protect nor log a page, for the log has reached max_size; the last "
                 "commit stands. Raise vm.max_map_count"
               : "can neither protect nor log a page; the last commit stands. Raise "
                 "vm.max_map_count",
          full ? 0 : error);
}

/*
 * The round's part for pages. A page is written back whole (U1). Or, if the page stays open, its next
 * image is written ahead. The image proves and restores the page (U8). Afterwards an entry has a slot if
 * its page stays open. Returns the slots used.
 */
static uint32_t flush_pages(struct txn *t, uint32_t slot)
{
    for (uint32_t i = 0; i < t->pages.count; i++) {
        struct page_entry *entry = &t->pages.opened[i];
        const char *contents = page_home(&t->pages, entry->page);
        if (t->pages.flags[entry->page] & PAGE_OPEN) {
            int error = segments_grow_log(t, (t->epoch + 1) % 2, (uint64_t)slot + 1);
            if (error != 0)
                give_up(t, entry->page, -error);
            log_write_image(&t->log, slot, t->epoch + 1, entry->page, contents, entry->now);
            entry->slot = slot++;
            entry->sum = entry->now;
            t->pages_ahead++;
        } else {
            medium_write_back(&t->c->medium, contents, PM_PAGE);
            entry->slot = SLOT_NONE;
        }
    }
    return slot;
}

/* Build the record in t->record. It lists the pages with the checksums of their present contents. */
static struct log_record *build_record(struct txn *t)
{
    struct journal_counts counts = journal_count(&t->journal);
    struct log_record *record = (struct log_record *)t->record;
    *record = (struct log_record){
        .epoch = t->epoch,
        .bytes = log_record_bytes(counts.clears, counts.words, t->pages.count),
        .clears = counts.clears,
        .words = counts.words,
        .pages = t->pages.count,
    };
    memcpy(record->magic, RECORD_MAGIC, sizeof record->magic);
    struct record_clear *clears = (struct record_clear *)(record + 1);
    struct record_word *words = (struct record_word *)(clears + counts.clears);
    struct record_page *pages = (struct record_page *)(words + counts.words);
    journal_collect(&t->journal, clears, words);
    record->sums = sums_word(sums_after(t, words, counts.words));
    for (uint32_t i = 0; i < t->pages.count; i++)
        pages[i] = (struct record_page){t->pages.opened[i].page, t->pages.opened[i].now};
    record->checksum = checksum(record, record->bytes, t->c->seed);
    return record;
}

static void note_for_copy(struct txn *t, const struct log_record *record)
{
    copy_note_words(t, record_clears(record), record->clears, record_words(record), record->words);
    for (uint64_t i = 0; i < record->pages; i++)
        copy_note(t, record_pages(record)[i].page << PM_PAGE_SHIFT, PM_PAGE);
}

/* After the fence: bring the words home (the next round fences their write-back). The next epoch begins
 * with the pages that stayed open. */
static void finish(struct txn *t, const struct log_record *record)
{
    const struct record_word *words = record_words(record);
    journal_apply(t->c, record_clears(record), record->clears, words, record->words);
    t->sums = sums_of_word(record->sums);
    journal_write_back(t->c, record_clears(record), record->clears, words, record->words);
    journal_finish(&t->journal);
    if (t->copy)
        note_for_copy(t, record);
    segments_close_freed(t, words, record->words);

    struct pages *p = &t->pages;
    uint32_t kept = 0, peak = p->count;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t page = p->opened[i].page;
        page_clear(p, page, PAGE_LISTED | PAGE_LOGGED);
        if (entry_is_kept(&p->opened[i])) {
            page_set(p, page, PAGE_LISTED | PAGE_LOGGED);
            p->opened[kept++] = p->opened[i];
        }
    }
    p->count = kept;
    pages_trim(p, peak);
    if (record->bytes > RECORD_KEPT)
        madvise(t->record + RECORD_KEPT, align_up(record->bytes - RECORD_KEPT, PM_PAGE),
                MADV_DONTNEED);
    count(&t->epoch);
    count(&t->commits);
}

static int commit_locked(struct txn *t)
{
    struct pages *p = &t->pages;
    struct journal_counts counts = journal_count(&t->journal);
    bool changed = any_page_changed(t);
    if (!changed && counts.words == 0 && counts.clears == 0 && t->note_count == 0)
        return 0;

    /* Everything that can fail comes first. Shrinking the log adds a word for each segment that it gives
     * up. */
    unsigned half = (t->epoch + 1) % 2;
    uint64_t bytes = log_record_bytes(counts.clears, counts.words + t->log.half[half].count,
                                      p->count + t->note_count);
    uint32_t slots = log_record_slots(bytes);
    int error = segments_grow_log(t, half, slots);
    if (error != 0)
        return container_fail_at(t->c, container_bytes(t->c), -error,
                                 "no space for a commit record of %" PRIu64
                                 " bytes (commit again, or roll back)",
                                 bytes);
    segments_shrink_log(t, half, slots + min_u64(p->count + t->note_count, HOT_MAX));

    apply_notes(t);
    drop_fresh(p);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->opened[i].slot == SLOT_NONE)
            hash_entry(t, &p->opened[i]);
    const struct log_record *record = build_record(t);
    close_cold(t, log_record_slots(record->bytes));
    t->log.half[half].next = flush_pages(t, log_record_slots(record->bytes));
    log_write_record(&t->log, half, record, record->bytes);
    medium_fence(&t->c->medium);
    txn_note_fenced(t, t->epoch);
    finish(t, record);
    undo_note_images(t);
    return 0;
}

int undo_commit(struct txn *t)
{
    int result = commit_locked(t);
    t->reserved &= result != 0;
    return result;
}
