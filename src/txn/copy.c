/*
 * See copy.h. Costs: the copy reads and writes everything but free space, and the log of undo and redo.
 * While it runs, a commit spends some nanoseconds to note each page. The pause copies the pages that changed
 * since the last pass, mostly fewer than FEW. Under undo it also copies the pages that the open transaction
 * has stored to.
 *
 * The copy ends, whatever `progress` and other threads commit. There are at most PASSES_MAX passes, and each
 * copies a page at most once. After the last pass only the room for the pause grows, to twice what is left
 * each time. The pages left are at most all pages of the container, so that ends too.
 */
#define _GNU_SOURCE
#include "txn/copy.h"

#include "base/error.h"
#include "container/new_file.h"
#include "txn/recovery.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNK      (UINT64_C(1) << 20) /* bytes from one call of `progress` to the next */
#define FEW        256u                /* the pause begins when at most this many pages changed, */
#define PASSES_MAX 7                   /* or after this many passes over the changes */

struct job {
    struct txn *t;
    struct new_file file;
    const char *path;
    copy_progress *progress;
    void *context;
    struct page_set sets[2]; /* commits fill one set while the other is copied */
    struct copy shared;
    uint64_t *free;            /* a bit for each chunk of a log that was free at the beginning */
    uint64_t allocated;        /* bytes of the file that have blocks */
    char *memory;              /* contents of the pages taken in the pause, */
    uint32_t *taken;           /* their numbers, */
    uint32_t count;            /* their count, */
    uint32_t room;             /* and the most that fit */
    struct format_state state; /* the state page of the copy, */
    struct format_guard guard; /* and its guard */
    uint64_t bytes;            /* size of the container in the pause */
    int error;                 /* of the pause, -errno */
};

/* ---- what commits tell ------------------------------------------------------------------------- */

static void add_page(struct page_set *set, uint32_t page)
{
    uint64_t bit = UINT64_C(1) << page % 64;
    if (set->bits[page / 64] & bit)
        return;
    set->bits[page / 64] |= bit;
    set->pages[set->count++] = page;
}

void copy_note(struct txn *t, uint64_t offset, uint64_t bytes)
{
    for (uint64_t page = offset >> PM_PAGE_SHIFT; page << PM_PAGE_SHIFT < offset + bytes; page++)
        add_page(t->copy->changed, (uint32_t)page);
}

void copy_note_words(struct txn *t, const struct record_clear *clears, uint64_t clear_count,
                     const struct record_word *words, uint64_t word_count)
{
    const struct container *c = t->c;
    for (uint64_t i = 0; i < clear_count; i++)
        copy_note(t, clears[i].offset, clears[i].bytes);
    for (uint64_t i = 0; i < word_count; i++) {
        uint64_t segment = (words[i].offset - FORMAT_TABLE) / sizeof(uint64_t);
        copy_note(t, words[i].offset, sizeof(uint64_t));
        if (is_table_word(c, words[i].offset) && words[i].value != 0) /* C2 */
            copy_note(t, segment << c->segment_shift, c->segment_size);
    }
}

/* ---- the copying ------------------------------------------------------------------------------- */

static int cannot(const struct job *j, int error)
{
    return pm__fail_system(-error, "%s: cannot copy it to %s", j->t->c->path, j->path);
}

static int tell(const struct job *j, uint64_t done)
{
    uint64_t total = container_file_bytes(j->t->c);
    if (!j->progress || j->progress(j->context, min_u64(done, total), total) == 0)
        return 0;
    return pm__fail(ECANCELED,
                    "%s: copying it to %s was stopped, as the program asked; nothing is "
                    "left of the copy",
                    j->t->c->path, j->path);
}

/* Give the file blocks for `bytes`. */
static int allocate(struct job *j, uint64_t bytes)
{
    int error = bytes > j->allocated ? file_allocate(j->file.fd, j->allocated, bytes) : 0;
    j->allocated = error == 0 ? max_u64(bytes, j->allocated) : j->allocated;
    return error == 0 ? 0 : cannot(j, error);
}

/* Commits may change home meanwhile, so the kernel may read half of a change. But a commit notes each
 * page that it changes. */
static int copy_range(struct job *j, uint64_t offset, uint64_t bytes)
{
    int error = file_write(j->file.fd, j->t->c->file + offset, bytes, offset);
    return error == 0 ? 0 : cannot(j, error);
}

/* What is free costs no more than its blocks. */
static bool is_wanted(const struct job *j, uint64_t at)
{
    const struct container *c = j->t->c;
    if (c->is_log) { /* C5 */
        uint64_t chunk = at / c->chunk_size;
        return (j->free[chunk / 64] >> chunk % 64 & 1) == 0;
    }
    enum segment_kind kind = segment_kind(table_word(home_table(c), at >> c->segment_shift));
    return kind != SEGMENT_FREE && kind != SEGMENT_LOG;
}

/* Step 2: copy all segments with data or metadata. */
static int copy_all(struct job *j)
{
    const struct container *c = j->t->c;
    uint64_t end = container_file_bytes(c);
    for (uint64_t at = 0, n; at < end; at += n) {
        n = min_u64(CHUNK, c->segment_size - at % c->segment_size); /* at most a chunk of the log */
        if (is_wanted(j, at) && copy_range(j, at, n) != 0)
            return -1;
        if (tell(j, at + n) != 0)
            return -1;
    }
    return 0;
}

static int compare_pages(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Step 3: copy the pages of a set, and empty it. The last pass does not call `progress`, since its commits
 * would make the pause longer. */
static int copy_set(struct job *j, struct page_set *set, bool is_last)
{
    uint32_t n, told = 0;
    int result = 0;
    qsort(set->pages, set->count, sizeof *set->pages, compare_pages);
    for (uint32_t i = 0; i < set->count && result == 0; i += n) {
        for (n = 1; i + n < set->count && n < CHUNK >> PM_PAGE_SHIFT &&
                    set->pages[i + n] == set->pages[i] + n;)
            n++;
        result = copy_range(j, (uint64_t)set->pages[i] << PM_PAGE_SHIFT,
                            (uint64_t)n << PM_PAGE_SHIFT);
        if (result == 0 && !is_last && i + n - told >= CHUNK >> PM_PAGE_SHIFT) {
            result = tell(j, UINT64_MAX);
            told = i + n;
        }
    }
    for (uint32_t i = 0; i < set->count; i++)
        set->bits[set->pages[i] / 64] = 0;
    set->count = 0;
    return result;
}

/* ---- the pause --------------------------------------------------------------------------------- */

static uint64_t room_bytes(uint32_t pages)
{
    return pages * (PM_PAGE + sizeof(uint32_t));
}

/* Make room for `pages` pages and their numbers. The kernel provides the memory before the pause begins. */
static int make_room(struct job *j, uint32_t pages)
{
    if (pages <= j->room)
        return 0;
    char *memory = map_table(room_bytes(pages));
    if (memory == MAP_FAILED)
        return cannot(j, -errno);
    for (uint64_t i = 0; i < room_bytes(pages); i += PM_PAGE)
        *(volatile char *)(memory + i) = 0;
    if (j->room > 0)
        munmap(j->memory, room_bytes(j->room));
    j->memory = memory;
    j->taken = (uint32_t *)(memory + ((uint64_t)pages << PM_PAGE_SHIFT));
    j->room = pages;
    return 0;
}

static void take_page(struct job *j, uint32_t page, const char *contents)
{
    memcpy(j->memory + ((uint64_t)j->count << PM_PAGE_SHIFT), contents, PM_PAGE);
    j->taken[j->count++] = page;
}

/* Take the pages that are left. Then take the pages that the open transaction has changed in place, as
 * they were before (C3). */
static void take_pages(struct job *j)
{
    const struct txn *t = j->t;
    for (uint32_t i = 0; i < t->copy->changed->count; i++)
        take_page(j, t->copy->changed->pages[i],
                  t->c->file + ((uint64_t)t->copy->changed->pages[i] << PM_PAGE_SHIFT));
    for (uint32_t i = 0; i < t->pages.count && t->engine->in_place; i++) {
        const struct page_entry *entry = &t->pages.opened[i];
        if (entry->slot != SLOT_NONE)
            take_page(j, entry->page, log_slot(&t->log, t->epoch % 2, entry->slot));
    }
}

static void take_state(struct job *j)
{
    struct txn *t = j->t;
    j->bytes = container_file_bytes(t->c);
    j->state = *file_state(t->c);
    j->state.mark = MARK_CLOSED;
    if (t->c->is_log) /* all that it has is durable when the copy is */
        j->state.base_epoch = seal(t->epoch - 1);
    else
        void_log_in(t, &j->state, t->epoch + 4);
    j->guard = *file_guard(t->c);
    if (t->c->header.version >= FORMAT_VERSION) {
        j->state.sums = sums_word(t->sums);
        j->guard.epoch = seal(t->epoch - 1);
    }
}

/*
 * Step 4, if few pages have changed, or after PASSES_MAX passes. If it returns false, make room for `*room`
 * pages, and then copy `*set`, unless it is NULL.
 */
static bool take(struct job *j, unsigned passes, uint32_t *room, struct page_set **set)
{
    struct txn *t = j->t;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    j->error = txn_retract(t);
    uint32_t changed = t->copy->changed->count;
    uint32_t left = changed + (t->engine->in_place ? t->pages.count : 0);
    bool passed = changed <= FEW || passes >= PASSES_MAX, taken = passed && left <= j->room;
    *set = NULL;
    if (taken) {
        take_pages(j);
        take_state(j); /* nobody reads the notes that commits make from here on */
    } else if (passed) {
        *room = 2 * left; /* other threads may commit while the kernel provides it */
    } else {
        *set = t->copy->changed;
        t->copy->changed = *set == &j->sets[0] ? &j->sets[1] : &j->sets[0];
    }
    lock_release_masked(&t->lock, &saved);
    return taken;
}

/* ---- from beginning to end --------------------------------------------------------------------- */

/* Step 5: write the taken pages, headers, guard and state page. */
static int write_taken(struct job *j)
{
    const struct format_header *header = &j->t->c->header;
    int error = 0;
    if (allocate(j, j->bytes) != 0)
        return -1;
    for (uint32_t i = 0; i < j->count && error == 0; i++)
        error = file_write(j->file.fd, j->memory + ((uint64_t)i << PM_PAGE_SHIFT), PM_PAGE,
                           (uint64_t)j->taken[i] << PM_PAGE_SHIFT);
    if (error == 0)
        error = file_write(j->file.fd, header, sizeof *header, FORMAT_HEADER_A);
    if (error == 0)
        error = file_write(j->file.fd, header, sizeof *header, FORMAT_HEADER_B);
    if (error == 0)
        error = file_write(j->file.fd, &j->guard, sizeof j->guard, FORMAT_GUARD);
    if (error == 0)
        error = file_write(j->file.fd, &j->state, sizeof j->state, FORMAT_STATE);
    if (error == 0)
        error = file_sync(j->file.fd);
    return error == 0 ? 0 : cannot(j, error);
}

/* Let the file system share the blocks, if it can, and if home has the same contents as the file. */
static bool share_blocks(struct job *j)
{
    const struct txn *t = j->t;
    bool same = t->c->readonly && !t->recovery.recovered && t->c->pointers_moved == 0;
    if (!same || ioctl(j->file.fd, FICLONE, t->c->fd) != 0)
        return false;
    j->allocated = container_file_bytes(t->c);
    return true;
}

static int copy(struct job *j)
{
    uint32_t room = 2 * FEW;
    unsigned passes = 0;
    if (!share_blocks(j) && (allocate(j, container_file_bytes(j->t->c)) != 0 || copy_all(j) != 0))
        return -1;
    for (;;) {
        struct page_set *changed;
        if (make_room(j, room) != 0)
            return -1;
        bool taken = take(j, passes, &room, &changed);
        if (j->error != 0)
            return cannot(j, j->error);
        if (taken)
            return write_taken(j);
        if (!changed)
            continue;
        passes++;
        if (allocate(j, container_file_bytes(j->t->c)) != 0 ||
            copy_set(j, changed, passes == PASSES_MAX) != 0)
            return -1;
    }
}

bool txn_is_copied(struct txn *t)
{
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    bool copied = t->copy;
    lock_release_masked(&t->lock, &saved);
    return copied;
}

int txn_refuse_beside_copy(const struct txn *t)
{
    return pm__fail(EBUSY, "%s: a copy of it is being made; wait until that pm_copy() has returned",
                    t->c->path);
}

/* From here on commits note the pages that they change. What is free now is noted when it is filled. */
static int begin(struct job *j)
{
    struct txn *t = j->t;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    bool busy = t->copy;
    if (!busy)
        t->copy = &j->shared;
    if (!busy && t->engine->list_free)
        t->engine->list_free(t, j->free);
    lock_release_masked(&t->lock, &saved);
    return busy ? txn_refuse_beside_copy(t) : 0;
}

static void end(struct job *j)
{
    sigset_t saved;
    lock_acquire_masked(&j->t->lock, &saved);
    j->t->copy = NULL;
    lock_release_masked(&j->t->lock, &saved);
}

static int open_file(struct job *j)
{
    struct stat original, there;
    if (lstat(j->path, &there) ==
        0) /* report an existing file now, and not when the copy is finished */
        return pm__fail(EEXIST,
                        "%s: exists already, and a copy replaces no file; choose another name",
                        j->path);
    if (fstat(j->t->c->fd, &original) != 0)
        return pm__fail_system(errno, "%s: cannot read its status", j->t->c->path);
    if (new_file_open(&j->file, j->path, original.st_mode & 0777) != 0)
        return cannot(j, -errno);
    return 0;
}

static int make(struct job *j)
{
    if (open_file(j) != 0)
        return -1;
    if (copy(j) == 0 && tell(j, UINT64_MAX) == 0 && new_file_publish(&j->file, j->path) == 0) {
        new_file_close(&j->file);
        return 0;
    }
    new_file_discard(&j->file);
    return -1;
}

int txn_copy(struct txn *t, const char *path, copy_progress *progress, void *context)
{
    uint64_t pages = container_file_max(t->c) >> PM_PAGE_SHIFT;
    uint64_t bits = align_up(divide_up(pages, 64) * sizeof(uint64_t), PM_PAGE);
    uint64_t numbers = align_up(pages * sizeof(uint32_t), PM_PAGE);
    uint64_t chunks = t->c->is_log ? container_file_max(t->c) / t->c->chunk_size : 0;
    uint64_t free = align_up(divide_up(chunks, 64) * sizeof(uint64_t), PM_PAGE);
    struct tables tables;
    struct job j = {.t = t, .path = path, .progress = progress, .context = context};
    int error = tables_open(&tables, 2 * (bits + numbers) + free);
    if (error != 0)
        return cannot(&j, error);
    for (int i = 0; i < 2; i++)
        j.sets[i] = (struct page_set){.bits = tables_take(&tables, bits),
                                      .pages = tables_take(&tables, numbers)};
    j.free = tables_take(&tables, free);
    j.shared.changed = &j.sets[0];
    int result = begin(&j);
    if (result == 0) {
        result = make(&j);
        error = errno;
        end(&j);
        if (j.room > 0)
            munmap(j.memory, room_bytes(j.room));
        errno = error;
    }
    error = errno;
    tables_close(&tables);
    errno = error;
    return result;
}
