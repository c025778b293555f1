/*
 * Recovery from the undo engine's log: see txn/recovery.c for what comes before and after.
 *
 *   1  Read the record of either half. The newest whole record above the base is e. If there is none,
 *      e is the base, which counts as a record that holds (U4).
 *   2  Does e hold? Each page that it lists must have the listed contents in home, or in a valid image
 *      of e + 1 (U3).
 *   3  If e holds, copy images of e + 1 back, and apply words of e - 1 and of e. If it does not hold,
 *      copy images of e back, and apply words of e - 1 (U4, U9, U10).
 *   4  Before anything is changed, make durable what steps 1 and 2 read (U5).
 *
 * Nothing read from the medium is used before its checksum and its range were checked.
 */
#include "txn/recovery.h"
#include "txn/undo/undo.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/vector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A valid image in the log. */
struct image {
    uint32_t page;
    uint32_t slot;
    uint64_t sum; /* checksum of its contents */
};

struct image_list {
    struct vector images; /* struct image, sorted by page */
    unsigned half;
};

static const struct image *image_at(const struct image_list *list, uint64_t i)
{
    return (const struct image *)list->images.items + i;
}

static uint64_t file_pages(const struct txn *t)
{
    return container_bytes(t->c) >> PM_PAGE_SHIFT;
}

static uint64_t slot_offset(const struct txn *t, unsigned half, uint32_t slot)
{
    return (uint64_t)(log_slot(&t->log, half, slot) - t->c->home);
}

/* True if the counts fit the record's length, and the length fits the half. Then no sum below overflows. */
static bool record_shape_is_valid(const struct txn *t, unsigned half, const struct log_record *r)
{
    uint64_t most = (uint64_t)log_capacity(&t->log, half) * PM_PAGE;
    return memcmp(r->magic, RECORD_MAGIC, sizeof r->magic) == 0 && r->bytes >= sizeof *r &&
           r->bytes <= most && r->clears <= most && r->words <= most && r->pages <= most &&
           log_record_bytes(r->clears, r->words, r->pages) == r->bytes;
}

static bool page_is_valid(const struct txn *t, uint64_t page)
{
    return page < file_pages(t) && recovery_range_is_valid(t, page * PM_PAGE, PM_PAGE, PM_PAGE);
}

static bool record_contents_are_valid(const struct txn *t, const struct log_record *r)
{
    for (uint64_t i = 0; i < r->clears; i++)
        if (!recovery_range_is_valid(t, record_clears(r)[i].offset, record_clears(r)[i].bytes,
                                     sizeof(uint64_t)))
            return false;
    for (uint64_t i = 0; i < r->words; i++)
        if (!recovery_word_is_valid(t, record_words(r)[i].offset))
            return false;
    for (uint64_t i = 0; i < r->pages; i++)
        if (!page_is_valid(t, record_pages(r)[i].page))
            return false;
    return true;
}

/*
 * Read the record in a half. If the record is whole and newer than the base, `*found` gets it, owned by
 * the caller. Otherwise `*found` is NULL. If a whole record cannot be ours, -1.
 */
static int read_record(const struct txn *t, unsigned half, uint64_t base, struct log_record **found)
{
    *found = NULL;
    struct log_record head;
    log_read_record(&t->log, half, &head, sizeof head);
    if (!record_shape_is_valid(t, half, &head) || head.epoch <= base || head.epoch > EPOCH_MAX ||
        (head.epoch + 1) % 2 != half)
        return 0;
    struct log_record *r = malloc(head.bytes);
    if (!r)
        return pm__fail_system(ENOMEM,
                               "%s: no memory to read the log's commit record of %" PRIu64 " bytes",
                               t->c->path, head.bytes);
    log_read_record(&t->log, half, r, head.bytes);
    uint64_t sum = r->checksum;
    r->checksum = 0;
    if (checksum(r, r->bytes, t->c->seed) != sum) { /* the record is torn */
        free(r);
        return 0;
    }
    if (!record_contents_are_valid(t, r)) {
        free(r);
        return pm__fail_at(t->c->path, slot_offset(t, half, 0), EBADMSG,
                           "the commit record of epoch %" PRIu64
                           " refers beyond the end of the file: "
                           "truncated; restore the file from a backup",
                           head.epoch);
    }
    *found = r;
    return 0;
}

static int compare_images(const void *a, const void *b)
{
    uint32_t x = ((const struct image *)a)->page, y = ((const struct image *)b)->page;
    return (x > y) - (x < y);
}

static int damaged_log(const struct txn *t, unsigned half, uint32_t slot, const char *what)
{
    return pm__fail_at(t->c->path, slot_offset(t, half, slot), EBADMSG,
                       "the log is damaged: %s; restore the file from a backup", what);
}

/* True if `slot` holds an image of `epoch`. An image of the right epoch that is not valid may be torn.
 * Then its round had no fence, and the page was never opened. */
static bool read_image(const struct txn *t, uint64_t epoch, uint32_t slot, struct image *image)
{
    const struct log_descriptor *d = log_descriptor(&t->log, epoch % 2, slot);
    if (d->epoch != epoch || !page_is_valid(t, d->page))
        return false;
    uint64_t sum = checksum(log_slot(&t->log, epoch % 2, slot), PM_PAGE, t->c->seed);
    *image = (struct image){(uint32_t)d->page, slot, sum};
    return d->sum == checksum_mix(sum, epoch, d->page);
}

/* The number of slots in the half of `epoch` that are known to have been fenced in that epoch. */
static uint32_t fenced_slots(const struct txn *t, uint64_t epoch)
{
    uint64_t word = file_state(t->c)->fenced_images;
    uint64_t slots = seal_payload(word) & ((UINT64_C(1) << FENCED_SLOT_BITS) - 1);
    return word == fenced_images(epoch, slots) ? (uint32_t)slots : 0;
}

/* Read all valid images of `epoch`. They follow the record of the epoch before, if there is one. */
static int read_images(const struct txn *t, uint64_t epoch, const struct log_record *record,
                       struct image_list *list)
{
    uint32_t capacity = log_capacity(&t->log, epoch % 2);
    uint32_t fenced = fenced_slots(t, epoch);
    *list = (struct image_list){.half = epoch % 2};
    if (fenced > capacity)
        return damaged_log(t, epoch % 2, 0, "a part of it is missing");
    for (uint32_t slot = record ? log_record_slots(record->bytes) : 0; slot < capacity; slot++) {
        struct image image;
        if (!read_image(t, epoch, slot, &image)) {
            if (slot >= fenced)
                continue;
            vector_free(&list->images);
            return damaged_log(t, epoch % 2, slot, "the image of a page that was stored to");
        }
        struct image *added = vector_push(&list->images, sizeof image);
        if (!added) {
            uint64_t read = list->images.count;
            vector_free(&list->images);
            return pm__fail_system(ENOMEM, "%s: no memory to recover more than %" PRIu64 " pages",
                                   t->c->path, read);
        }
        *added = image;
    }
    if (list->images.count > 0)
        qsort(list->images.items, list->images.count, sizeof(struct image), compare_images);
    return 0;
}

/* U3: true if each listed page has the listed contents in home, or in an image of the next epoch. */
static bool record_holds(const struct txn *t, const struct log_record *r,
                         const struct image_list *next)
{
    for (uint64_t i = 0; i < r->pages; i++) {
        const struct record_page *listed = &record_pages(r)[i];
        struct image key = {.page = (uint32_t)listed->page};
        const struct image *image =
            next->images.count == 0
                ? NULL
                : bsearch(&key, next->images.items, next->images.count, sizeof key, compare_images);
        if (image && image->sum == listed->sum)
            continue;
        if (checksum(page_home(&t->pages, key.page), PM_PAGE, t->c->seed) != listed->sum)
            return false;
    }
    return true;
}

/* U5: the decision rests on data that may so far be in the cache only. Make it durable. */
static int make_durable(struct txn *t, const struct log_record *const records[2],
                        const struct image_list *images)
{
    struct medium *medium = &t->c->medium;
    medium_write_back(medium, home_table(t->c), atomic_load(&t->c->segments) * sizeof(uint64_t));
    for (int i = 0; i < 2; i++) {
        const struct log_record *r = records[i];
        if (!r)
            continue;
        uint32_t slots = log_record_slots(r->bytes);
        for (uint32_t slot = 0; slot < slots; slot++)
            medium_write_back(medium, log_slot(&t->log, (r->epoch + 1) % 2, slot), PM_PAGE);
        for (uint64_t k = 0; k < r->pages; k++)
            medium_write_back(medium, page_home(&t->pages, (uint32_t)record_pages(r)[k].page),
                              PM_PAGE);
    }
    for (uint64_t i = 0; i < images->images.count; i++) {
        uint32_t slot = image_at(images, i)->slot;
        medium_write_back(medium, log_slot(&t->log, images->half, slot), PM_PAGE);
        medium_write_back(medium, log_descriptor(&t->log, images->half, slot),
                          sizeof(struct log_descriptor));
    }
    int error = medium_settle(medium);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot make the log durable", t->c->path);
    return 0;
}

static void restore(struct txn *t, const struct image_list *images)
{
    for (uint64_t i = 0; i < images->images.count; i++) {
        char *home = page_home(&t->pages, image_at(images, i)->page);
        memcpy(home, log_slot(&t->log, images->half, image_at(images, i)->slot), PM_PAGE);
        medium_write_back(&t->c->medium, home, PM_PAGE);
    }
}

/* A record's words for the segment table. The table is one region, so these words are one run, sorted by
 * offset. */
struct table_words {
    const struct record_word *words;
    uint64_t count;
};

static struct table_words table_words(const struct txn *t, const struct log_record *r)
{
    struct table_words table = {NULL, 0};
    for (uint64_t i = 0; r && i < r->words; i++)
        if (is_table_word(t->c, record_words(r)[i].offset)) {
            table.words = table.count == 0 ? &record_words(r)[i] : table.words;
            table.count++;
        }
    return table;
}

static int compare_offsets(const void *a, const void *b)
{
    uint64_t x = ((const struct record_word *)a)->offset,
             y = ((const struct record_word *)b)->offset;
    return (x > y) - (x < y);
}

/* True if `table` changes the word at `offset`. For a word of a bitmap: true if it changes the owner of
 * the bitmap's segment. */
static bool overrules(const struct txn *t, const struct table_words *table, uint64_t offset)
{
    if (offset < FORMAT_TABLE) /* the root */
        return false;
    struct record_word key = {.offset = offset};
    if (!is_table_word(t->c, offset))
        key.offset = FORMAT_TABLE + (offset >> t->c->segment_shift) * sizeof(uint64_t);
    return table->count > 0 &&
           bsearch(&key, table->words, table->count, sizeof key, compare_offsets);
}

static void apply_changes(struct txn *t, const struct record_clear *clears, uint64_t clear_count,
                          const struct record_word *words, uint64_t word_count)
{
    journal_apply(t->c, clears, clear_count, words, word_count);
    journal_write_back(t->c, clears, clear_count, words, word_count);
}

/* Apply record `r`, except for words and clears that `later` overrules. */
static void apply_record(struct txn *t, const struct log_record *r, const struct table_words *later)
{
    for (uint64_t i = 0; i < r->clears; i++)
        if (!overrules(t, later, record_clears(r)[i].offset))
            apply_changes(t, &record_clears(r)[i], 1, NULL, 0);
    for (uint64_t i = 0; i < r->words; i++) {
        const struct record_word *word = &record_words(r)[i];
        if (!overrules(t, later, word->offset) && !recovery_takes_log(t, word))
            apply_changes(t, NULL, 0, word, 1);
    }
}

/*
 * Apply `before`, whose words may not have been fenced, and then `last`. Either may be NULL.
 *
 * U9: a bitmap lies in its slab's segment. If `last` gave this segment to somebody else, the bitmap's
 * words in `before` must not be written. By now a large object may be there, or log.
 *
 * U10: a segment that is log stays log. The log may have claimed it after a record freed it, and an
 * interrupted recovery must find its log again. (If instead the log was giving the segment up, it keeps
 * the segment a little longer.)
 *
 * Both rules were found by killing programs. In the model that the other rules come from, bitmaps and log
 * had places of their own.
 */
static void apply(struct txn *t, const struct log_record *before, const struct log_record *last)
{
    struct table_words none = {NULL, 0}, later = table_words(t, last);
    if (before)
        apply_record(t, before, &later);
    if (last)
        apply_record(t, last, &none);
}

/* Steps 2 to 4, with the records of step 1: `last` is the newest record or NULL, `before` is the other. */
static int recover_from(struct txn *t, uint64_t base, const struct log_record *last,
                        const struct log_record *before, struct recovered *found)
{
    uint64_t e = last ? last->epoch : base;
    if (before && before->epoch + 1 != e)
        return damaged_log(t, e % 2, 0, "its two records are not of adjacent epochs");
    struct image_list images;
    if (read_images(t, e + 1, last, &images) != 0)
        return -1;
    bool holds = !last || record_holds(t, last, &images);
    int result = 0;
    if (!holds) {
        vector_free(&images.images);
        if (e - 1 > base && !before)
            return damaged_log(t, e % 2, 0,
                               "the last record does not hold and the one before is gone");
        result = read_images(t, e, before, &images);
    }
    uint64_t state = holds ? e : e - 1;
    const struct log_record *newest = holds ? last : before;
    *found = (struct recovered){.restored = state, .newest = e};
    if (result == 0) /* record state + 1 would be at this offset */
        result = recovery_check_fenced(t, state, slot_offset(t, state % 2, 0));
    if (result == 0 && newest)
        result = recovery_take_sums(t, newest->sums, newest->epoch,
                                    slot_offset(t, (newest->epoch + 1) % 2, 0));
    if (result != 0) {
        vector_free(&images.images);
        return -1;
    }
    if (last || images.images.count > 0) {
        if (make_durable(t, (const struct log_record *const[2]){last, before}, &images) != 0) {
            vector_free(&images.images);
            return -1;
        }
        restore(t, &images);
        apply(t, before, holds ? last : NULL);
        t->recovery.recovered = true;
        t->recovery.pages = images.images.count;
    }
    vector_free(&images.images);
    return 0;
}

int undo_recover(struct txn *t, uint64_t base, struct recovered *found)
{
    struct log_record *records[2] = {NULL, NULL};
    int result = read_record(t, 0, base, &records[0]);
    if (result == 0)
        result = read_record(t, 1, base, &records[1]);
    if (result == 0) {
        bool first = records[0] && (!records[1] || records[0]->epoch > records[1]->epoch);
        result = recover_from(t, base, records[first ? 0 : 1], records[first ? 1 : 0], found);
    }
    free(records[0]);
    free(records[1]);
    return result;
}
