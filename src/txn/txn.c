/*
 * The life of a container's transactions: from recovery at open to a clean close. txn_open() checks the
 * segment table, recovers, and checks what recovery has restored. Then it maps the view and loads the
 * engine. Accesses are served only when all this has succeeded.
 *
 * txn_close() lets the engine bring everything home and waits for it. Then it raises the base epoch by a
 * round of its own, which voids the log. The other functions here hand on to the engine.
 */
#include "txn/txn.h"

#include "address/foreign.h"
#include "address/translation.h"
#include "base/error.h"
#include "pages/fault.h"
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

static int load_log(struct txn *t)
{
    if (t->c->is_log || log_load(&t->log) == 0)
        return 0;
    return container_damaged(t->c, FORMAT_TABLE, "a half of the log is missing");
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

static int load_translation(struct txn *t, uint64_t private_max)
{
    t->translation = translation_new(&t->pages, &t->modules, &t->map, private_max);
    t->foreign.translation = t->translation;
    return t->translation ? 0 : -1;
}

/*
 * The size up to which the lines of a new object are marked together (T3); 0: of none. Under redo a commit
 * cannot tell to which fresh lines the program has stored. Where it logs them, on a file or in a translated
 * container, each has a mark of its own. So it has under LIBPM_AUDIT=1, which knows a missed store by a line
 * without a mark.
 */
static uint64_t object_max(const struct txn *t)
{
    if (!t->tracker.stores || t->tracker.audit || t->translation)
        return 0;
    if (t->view.home_is_log)
        return COMPARED_OBJECT_MAX;
    return t->view.logs_fresh ? 0 : WRITTEN_OBJECT_MAX;
}

int txn_open(struct txn *t, struct container *c, const struct txn_options *options)
{
    bool stores = options->stores && !options->engine->in_place && !c->readonly;
    bool kinds = stores && c->vouched, audit = options->audit && !kinds;
    bool untouched = c->readonly && !c->translated; /* no access needs our handler */
    *t = (struct txn){.c = c,
                      .engine = options->engine,
                      .concurrent = options->concurrent,
                      .tracker = {.stores = stores, .kinds = kinds, .audit = options->audit},
                      .audit_pointers = audit,
                      .looks = audit || (c->vouched && !kinds),
                      .modules = {.c = c, .journal = &t->journal, .page_lock = &t->lock},
                      .foreign = {.c = c,
                                  .modules = &t->modules,
                                  .policy = options->foreign,
                                  .refuse_modules = options->refuse_modules},
                      .journal = {.c = c}};
    if (txn_check_table(c, false) == 0 && load_tables(t) == 0 && recover(t) == 0) {
        /* Words that recovery applied may have added or removed log segments. */
        if (txn_check_table(c, true) == 0 && load_log(t) == 0 && txn_check_root(t) == 0 &&
            modules_load(&t->modules) == 0 && sums_check_fixed(t) == 0 &&
            options->recovered(t) == 0 && container_map_rest(c) == 0 &&
            (!c->translated || load_translation(t, options->private_max) == 0) &&
            t->engine->load(t, options) == 0 && (untouched || fault_install(c->path) == 0)) {
            txn_find_maps(t);
            t->tracker.object_max = object_max(t);
            if (!untouched) { /* accesses are served from now on */
                c->serve = txn_fault;
                c->upper = t;
            }
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

int txn_end_home(struct txn *t)
{
    int error = sums_publish(t, t->epoch - 1);
    if (error == 0)
        error = medium_settle(&t->c->medium);
    if (error == 0) {
        set_file_mark(t, MARK_CLOSED);
        error = raise_base_epoch(t, t->epoch);
    }
    return error;
}

int txn_close(struct txn *t)
{
    int error = 0, result = t->engine->close(t);
    if (result == 0)
        result = txn_retract_or_fail(t);
    if (result == 0 && (t->commits > 0 || t->pages.count > 0))
        error = t->engine->end(t);
    else if (result == 0)
        error = publish_file_mark(t, MARK_CLOSED);
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
        (void)publish_file_mark(t, t->c->mark_failed);
    txn_unload(t);
    errno = error;
}

void txn_unload(struct txn *t)
{
    t->c->upper = NULL;
    t->engine->unload(t);
    translation_unload(t->translation);
    t->translation = NULL;
    t->foreign.translation = NULL;
    pointer_map_unload(&t->map);
}

/* ---- what is the same for all engines -------------------------------------------------------- */

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

int txn_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words)
{
    return t->engine->reserve(t, pages, extra_pages, extra_words);
}

int txn_begin_guarded_commit(struct txn *t, sigset_t *saved)
{
    lock_acquire_masked(&t->lock, saved);
    int error = t->concurrent ? pages_close_listed(&t->pages) : 0;
    return error == 0 ? 0 : pm__fail_system(-error, "%s: cannot protect pages", t->c->path);
}

int txn_wait(struct txn *t, uint64_t epoch)
{
    return t->engine->wait(t, epoch);
}

int txn_retract_or_fail(struct txn *t)
{
    int error = txn_retract(t);
    if (error == 0)
        return 0;
    if (txn_check_medium(t) != 0)
        return -1;
    return container_fail_at(t->c, container_file_bytes(t->c), -error,
                             "cannot erase what is left of a commit that failed, and after a crash now that "
                             "commit might be there (commit again, or roll back)");
}

static int retract_locked(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    int result = txn_retract_or_fail(t);
    lock_release_masked(&t->lock, &saved);
    return result;
}

int txn_rollback(struct txn *t)
{
    bool adopted = t->modules.region.low < t->modules.region.high;
    int result = retract_locked(t);
    if (result == 0)
        result = t->engine->rollback(t);
    t->rollback_failed = result != 0;
    if (result == 0)
        txn_find_maps(t);
    if (result == 0 && adopted)
        modules_roll_back(&t->modules);
    return result;
}

int txn_check_rollback(const struct txn *t)
{
    if (!t->rollback_failed)
        return 0;
    return pm__fail(
        ENOTRECOVERABLE,
        "%s: the last rollback failed, perhaps half-way, so nothing is committed now; call "
        "pm_rollback() again, or close the container and open it again: either brings back the "
        "last commit",
        t->c->path);
}
