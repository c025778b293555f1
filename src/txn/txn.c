/* The life of a container's transactions: from recovery at open to a clean close. */
#include "txn/txn.h"

#include "base/error.h"
#include "base/panic.h"
#include "container/view.h"
#include "txn/fault.h"
#include "txn/foreign.h"
#include "txn/moved.h"
#include "txn/recovery.h"
#include "txn/sums.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t notes_bytes(const struct container *c)
{
    return (c->max_size >> PM_PAGE_SHIFT) * sizeof(struct page_note);
}

/* Bytes of the largest record: it lists each page, and each word of each bitmap and pointer map. */
static uint64_t record_bytes(const struct container *c)
{
    uint64_t words = divide_up(c->max_size / FORMAT_GRANULARITY_MIN, BITMAP_SLOTS) +
                     divide_up(c->max_size, MAP_WORD_BYTES) + c->segments_max + MODULES_WORDS;
    return log_record_bytes(c->segments_max, words, c->max_size >> PM_PAGE_SHIFT);
}

/* True if the argument of a table word is valid at this segment. `*run` has the number of segments that
 * the large object before it still claims; it counts down over SEGMENT_MORE words. */
static bool word_is_valid(const struct container *c, uint32_t segment, uint64_t word, uint32_t *run,
                          uint32_t *run_first)
{
    enum segment_kind kind = segment_kind(word);
    uint64_t argument = segment_argument(word);
    if ((segment < c->meta_segments) != (kind == SEGMENT_META) ||
        (*run > 0) != (kind == SEGMENT_MORE))
        return false;
    switch (kind) {
    case SEGMENT_FREE:
        return word == 0;
    case SEGMENT_META:
    case SEGMENT_LOG:
        return true;
    case SEGMENT_SLAB:
        return view_shape(c, word, &(struct slab_shape){0});
    case SEGMENT_LARGE:
        *run_first = segment;
        *run = (uint32_t)argument - 1;
        return argument > 0 && argument <= c->segments_max - segment;
    case SEGMENT_MORE:
        (*run)--;
        return argument == segment - *run_first;
    case SEGMENT_MAP:
        return argument < format_map_groups(c->segments_max);
    }
    return false;
}

/* The end of the range in which to look for wrong words. Usually only zeros follow the words of the
 * file's segments. The first word behind them shows whether a large object was cut off. */
static uint32_t table_end(const struct container *c, uint32_t segments)
{
    uint64_t beyond = 0;
    for (uint32_t i = segments; i < c->segments_max; i++)
        beyond |= home_table(c)[i];
    return beyond != 0 ? c->segments_max : (uint32_t)min_u64(segments + 1, c->segments_max);
}

/*
 * Check the segment table as the medium has it. Afterwards code may safely compute with the words. Before
 * recovery a commit's words may be there in part, so each word is checked by itself.
 */
static int check_table(const struct container *c, bool recovered)
{
    uint32_t segments = atomic_load(&c->segments), run = 0, run_first = 0;
    for (uint32_t i = 0, end = table_end(c, segments); i < end; i++) {
        uint64_t word = home_table(c)[i], offset = FORMAT_TABLE + i * sizeof word;
        if (i >= segments && (word != 0 || run > 0))
            return pm__fail_at(c->path, container_bytes(c), EBADMSG,
                               "truncated, segment %u is in use beyond the end of the file; "
                               "restore the file from a backup",
                               i);
        if (!seal_is_valid(word) || (recovered && !word_is_valid(c, i, word, &run, &run_first)))
            return pm__fail_at(c->path, offset, EBADMSG,
                               "the word of segment %u in the segment table is damaged; restore "
                               "the file from a backup",
                               i);
    }
    return 0;
}

static int load_log(struct txn *t)
{
    if (log_load(&t->log) == 0)
        return 0;
    return pm__fail_at(t->c->path, FORMAT_TABLE, EBADMSG,
                       "a half of the log is missing; restore the file from a backup");
}

static int load_tables(struct txn *t)
{
    struct container *c = t->c;
    t->notes = tables_take(&c->tables, notes_bytes(c));
    t->record = tables_take(&c->tables, record_bytes(c));
    pages_load(&t->pages, c);
    if (!t->engine->in_place)
        tracker_load(&t->tracker, c);
    if (pointer_map_load(&t->map, c) != 0)
        return -1;
    log_open(&t->log, c);
    t->table = (struct journal_region){.offset = FORMAT_TABLE, .words = c->segments_max};
    t->root = (struct journal_region){
        .offset = FORMAT_STATE + offsetof(struct format_state, root_offset), .words = ROOT_WORDS};
    return load_log(t);
}

/* Check the root's words as the medium has them. pm_check() tells whether the root is an object. */
static int check_root(const struct txn *t)
{
    const uint64_t *root = home_word(t->c, t->root.offset);
    for (uint32_t i = 0; i < ROOT_WORDS; i++)
        if (!seal_is_valid(root[i]) || seal_payload(root[i]) >= container_bytes(t->c))
            return pm__fail_at(t->c->path, t->root.offset + i * sizeof *root, EBADMSG,
                               "the root's word is damaged; restore the file from a backup");
    return 0;
}

/* After recovery home must have the sums of the last commit. A container of an older format has no sums
 * to compare. */
static int check_sums(struct txn *t)
{
    if (t->c->header.version == FORMAT_VERSION)
        return sums_check_fixed(t);
    return t->c->readonly ? 0 : sums_upgrade(t);
}

int txn_open(struct txn *t, struct container *c, const struct txn_options *options)
{
    bool stores = options->stores && !options->engine->in_place;
    bool kinds = stores && c->vouched, audit = options->audit && !kinds;
    bool untouched = c->readonly && !c->moved; /* no access needs our handler */
    *t = (struct txn){.c = c,
                      .engine = options->engine,
                      .concurrent = options->concurrent,
                      .tracker = {.stores = stores, .kinds = kinds, .audit = options->audit},
                      .audit_pointers = audit,
                      .looks = audit || (c->vouched && !kinds),
                      .foreign = options->foreign,
                      .refuse_modules = options->refuse_modules,
                      .journal = {.c = c}};
    if (check_table(c, false) == 0 && load_tables(t) == 0 && recover(t) == 0) {
        /* Words that recovery applied may have added or removed log segments. */
        if (check_table(c, true) == 0 && load_log(t) == 0 && check_root(t) == 0 &&
            modules_load(t) == 0 && check_sums(t) == 0 && options->recovered(t) == 0 &&
            container_map_rest(c) == 0 && (!c->moved || moved_load(t, options->private_max) == 0) &&
            t->engine->load(t, options) == 0 && (untouched || fault_install(c->path) == 0)) {
            txn_find_maps(t);
            c->medium.counts = (struct medium_counts){0}; /* statistics begin when open returns */
            if (!untouched)
                c->upper = t; /* accesses are served from now on */
            return 0;
        }
        txn_abandon(t);
        return -1;
    }
    int error = errno;
    txn_unload(t);
    errno = error;
    return -1;
}

/* Under the page lock, because the log claims segments while another thread stores. */
static int check_locked(struct txn *t)
{
    const struct container *c = t->c;
    uint32_t segments = atomic_load(&c->segments), log[2] = {0, 0};
    if (check_table(c, true) != 0)
        return -1;
    if (recovery_check_state(t) != 0)
        return -1;
    if (!pages_are_valid(&t->pages))
        return pm__fail(EBADMSG, "%s: the page states contradict each other: a bug of libpm",
                        c->path);
    for (uint32_t i = 0; i < segments; i++) {
        uint64_t word = shadow_table(c)[i];
        if ((i < t->table.low || i >= t->table.high) && home_table(c)[i] != word)
            return pm__fail_at(c->path, FORMAT_TABLE + i * sizeof word, EBADMSG,
                               "the segment table has changed outside any transaction; restore the "
                               "file from a backup");
        if (segment_kind(word) == SEGMENT_LOG)
            log[segment_log_half(word)]++;
    }
    if (log[0] != t->log.half[0].count || log[1] != t->log.half[1].count)
        return pm__fail_at(
            c->path, FORMAT_TABLE, EBADMSG,
            "the log's segments are not those of the table; restore the file from a backup");
    return 0;
}

int txn_check(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int result = check_locked(t);
    lock_release_masked(&t->lock, &saved);
    return result;
}

int txn_close(struct txn *t)
{
    int error = 0, result = t->engine->close(t);
    if (result == 0 && (t->commits > 0 || t->pages.count > 0)) {
        error = sums_publish(t, t->epoch - 1);
        if (error == 0)
            error = medium_settle(&t->c->medium);
        if (error == 0) {
            set_file_mark(t, MARK_CLOSED);
            error = raise_base_epoch(t, t->epoch);
        }
    } else if (result == 0) {
        error = publish_file_mark(t, MARK_CLOSED);
    }
    if (error != 0)
        result = pm__fail_system(-error, "%s: cannot write back, which the next pm_open() will do",
                                 t->c->path);
    txn_unload(t);
    return result;
}

void txn_abandon(struct txn *t)
{
    int error = errno;
    if (!t->c->readonly) /* if open, a copy of the whole file would be refused; it is too if this fails */
        (void)publish_file_mark(t, MARK_CLOSED);
    txn_unload(t);
    errno = error;
}

void txn_unload(struct txn *t)
{
    t->c->upper = NULL;
    t->engine->unload(t);
    moved_unload(t);
    pointer_map_unload(&t->map);
}

/* ---- what is the same for all engines -------------------------------------------------------- */

void txn_describe_object(const struct txn *t, uint64_t offset, const char *before,
                         char text[OBJECT_TEXT])
{
    struct view open = view_open(t->c);
    uint64_t start, bytes;
    text[0] = 0;
    if (view_find(&open, offset, &start, &bytes))
        snprintf(text, OBJECT_TEXT, "%sbyte %" PRIu64 " of the object of %" PRIu64 " bytes at %p",
                 before, offset - start, bytes, (void *)(t->c->base + start));
}

int txn_check_medium(struct txn *t)
{
    int error = medium_failed(&t->c->medium);
    if (error == 0)
        return 0;
    return pm__fail(
        EIO,
        "%s: the medium failed to store what was written (%s), and the container is read-only "
        "since; close it, and open it again when the medium is well: the state will be that "
        "of the last commit that returned, or of one after it",
        t->c->path, strerror(-error));
}

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
    if (!t->moved || offset >= container_bytes(t->c))
        return false;
    int error = moved_touch(t, (uint32_t)(offset >> PM_PAGE_SHIFT));
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

void txn_note(struct txn *t, uint32_t page, bool live)
{
    t->notes[t->note_count++] = (struct page_note){.page = page, .live = live};
}

void txn_set_fresh(struct txn *t, uint32_t first, uint32_t count)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    for (uint32_t page = first; page < first + count; page++)
        /* If the last record lists a page, the page must not change without an image, or the record would
         * seem not to hold. Faults also list neighbours that lie in slabs which the allocator does not
         * know yet. */
        if (!(t->pages.flags[page] & (PAGE_LISTED | PAGE_KNOWN)))
            page_set(&t->pages, page, PAGE_FRESH);
    lock_release_masked(&t->lock, &saved);
}

int txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    return t->engine->dirty(t, offset, bytes);
}

int txn_touch(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint32_t page = (uint32_t)(offset >> PM_PAGE_SHIFT);
    uint32_t last = (uint32_t)((offset + bytes - 1) >> PM_PAGE_SHIFT);
    if (!t->moved || (page == last && page_has(&t->pages, page, PAGE_FIXED)))
        return 0;
    int error = 0;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    for (; page <= last && error == 0; page++)
        if (!page_has(&t->pages, page, PAGE_FIXED))
            error = moved_touch(t, page);
    lock_release_masked(&t->lock, &saved);
    return error;
}

int txn_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words)
{
    return t->engine->reserve(t, pages, extra_pages, extra_words);
}

/* While we commit, signal handlers may store, or read pages that must be made first. With concurrent
 * stores other threads may store too. So if either can happen, signals wait. */
int txn_begin_commit(struct txn *t, sigset_t *saved)
{
    if (t->concurrent || t->moved)
        lock_acquire_masked(&t->lock, saved);
    else
        lock_acquire(&t->lock);
    int error = t->concurrent ? pages_close_listed(&t->pages) : 0;
    return error == 0 ? 0 : pm__fail_system(-error, "%s: cannot protect pages", t->c->path);
}

int txn_commit(struct txn *t)
{
    return t->engine->commit(t);
}

void txn_end_commit(struct txn *t, const sigset_t *saved)
{
    t->note_count = 0;
    if (t->concurrent || t->moved)
        lock_release_masked(&t->lock, saved);
    else
        lock_release(&t->lock);
}

int txn_wait(struct txn *t, uint64_t epoch)
{
    return t->engine->wait(t, epoch);
}

int txn_rollback(struct txn *t)
{
    bool adopted = t->modules.region.low < t->modules.region.high;
    int result = t->engine->rollback(t);
    if (result == 0)
        txn_find_maps(t);
    return result == 0 && adopted ? modules_load(t) : result;
}
