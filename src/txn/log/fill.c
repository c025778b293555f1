/*
 * Bytes that are handed over (pm_write()). A store of the program goes to a private copy of a page, and the
 * commit looks for what differs from home. The bytes of a new object need neither copy nor search. They go
 * to home, through which the view is read, and the commit logs their lines as they are. Large values go
 * straight to the file (early.c).
 *
 * Invariants
 *  F1  A line is filled only if it has an object now and had none at the last commit, and if nobody has
 *      stored to its page since the page was closed. So nobody has the old bytes, and the view reads the new
 *      ones through to home.
 *  F2  Only on filled lines does home differ from what the log says, and on those of early parts, which are
 *      left. A rollback brings home what the log says of filled lines. So does a commit for lines of objects
 *      that were freed again.
 *  F3  If the page lock is not held, a signal handler may store to another object on the page. Then the page
 *      has been opened when the handler returns, and its private copy may lack these bytes. So it gets them.
 */
#include "txn/log/deltas.h"

#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>

/* Runs for which memory is kept between commits. */
#define FILLED_KEPT 1024

static uint64_t *filled(const struct log_engine *k)
{
    return k->filled.items;
}

/* Note that lines are filled. False: there is no memory. */
static bool note(struct log_engine *k, uint64_t line, uint64_t lines)
{
    uint64_t *last = k->filled.count > 0 ? &filled(k)[k->filled.count - 1] : NULL;
    if (last && run_line(*last) + run_count(*last) == line &&
        run_count(*last) + lines <= RUN_LINES_MAX) {
        *last = redo_run(run_line(*last), run_count(*last) + lines);
        return true;
    }
    uint64_t *run = vector_push(&k->filled, sizeof *run);
    if (run)
        *run = redo_run(line, lines);
    return run != NULL;
}

static bool may_fill(struct txn *t, uint64_t line, uint64_t lines)
{
    uint32_t page = (uint32_t)(line / PM_PAGE_LINES);
    if (!log_page_is_untouched(t, page) || log_unmap_pages(t, page) != 0)
        return false;
    struct page_liveness live = t->upcalls.page_liveness(t->upcalls.context, page);
    uint64_t wanted = bits_between(line % PM_PAGE_LINES, line % PM_PAGE_LINES + lines);
    return (live.after & wanted) == wanted && (live.before & wanted) == 0;
}

/* Lines of one page. */
static bool fill_lines(struct txn *t, uint64_t line, const char *from, uint64_t lines)
{
    uint32_t page = (uint32_t)(line / PM_PAGE_LINES);
    if (!may_fill(t, line, lines) || !note(log_engine_of(t), line, lines))
        return false;
    log_note_filled(t, page, true);
    log_engine_of(t)->handed[page] = true;
    memcpy(t->c->home + line * PM_LINE, from, lines * PM_LINE);
    if (page_has(&t->pages, page, PAGE_PRIVATE)) /* F3 */
        memcpy(t->c->base + line * PM_LINE, from, lines * PM_LINE);
    return true;
}

static uint64_t fill(struct txn *t, uint64_t offset, const char *from, uint64_t bytes)
{
    uint64_t done = 0, early;
    while (done < bytes) {
        uint64_t line = (offset + done) / PM_LINE,
                 lines = min_u64(PM_PAGE_LINES - line % PM_PAGE_LINES, (bytes - done) / PM_LINE);
        early = log_write_early(t, offset + done, from + done, bytes - done);
        if (early == 0 && !fill_lines(t, line, from + done, lines))
            break;
        done += early != 0 ? early : lines * PM_LINE;
    }
    return done;
}

/* The page lock with its two system calls takes a third of the time in which a kilobyte is handed over. */
static bool needs_lock(const struct txn *t, uint64_t bytes)
{
    const struct log_engine *k = log_engine_of(t);
    return !__libc_single_threaded || k->bounded || k->mapped_runs > 0 ||
           bytes >= LOG_PAGES_MIN * PM_LINE;
}

uint64_t log_fill(struct txn *t, uint64_t offset, const void *from, uint64_t bytes)
{
    sigset_t saved;
    if (t->translation)
        return 0;
    if (!needs_lock(t, bytes))
        return fill(t, offset, from, bytes);
    lock_acquire_masked(&t->lock, &saved);
    uint64_t done = fill(t, offset, from, bytes);
    lock_release_masked(&t->lock, &saved);
    return done;
}

/* ---- at a commit or rollback ----------------------------------------------------------------- */

/* Home has what the log says. The page may have got a private copy since it was filled. */
static int unfill(struct txn *t, uint64_t line)
{
    uint32_t page = (uint32_t)(line / PM_PAGE_LINES);
    if (line >= container_bytes(t->c) / PM_LINE) /* cut off again, with its object */
        return 0;
    log_read_line(t, line, t->c->home + line * PM_LINE);
    bool copied = page_has(&t->pages, page, PAGE_OPEN | PAGE_PRIVATE) &&
                  !page_has(&t->pages, page, PAGE_LISTED);
    return copied ? view_restore(t, line * PM_LINE, PM_LINE) : 0;
}

uint64_t log_freed_lines(const struct txn *t, uint32_t page)
{
    return t->freed == t->epoch ? ~t->upcalls.page_liveness(t->upcalls.context, page).after : 0;
}

/* Call `visit` with the filled lines of each page: with those that are freed, or with the others. */
static int for_each_page(struct txn *t, int (*visit)(struct txn *t, uint64_t first, uint64_t lines),
                         bool freed)
{
    const struct log_engine *k = log_engine_of(t);
    int result = 0;
    for (uint64_t i = 0; i < k->filled.count; i++) {
        uint64_t run = filled(k)[i], line = run_line(run), end = line + run_count(run);
        for (uint64_t next; line < end; line = next) {
            uint64_t page = line / PM_PAGE_LINES, first = page * PM_PAGE_LINES;
            next = min_u64(end, first + PM_PAGE_LINES);
            uint64_t lines = log_freed_lines(t, (uint32_t)page);
            lines = (freed ? lines : ~lines) & bits_between(line - first, next - first);
            int error = lines != 0 ? visit(t, first, lines) : 0;
            result = result == 0 ? error : result;
        }
    }
    return result;
}

static int unfill_lines(struct txn *t, uint64_t first, uint64_t lines)
{
    int result = 0;
    for (; lines; lines &= lines - 1) {
        int error = unfill(t, first + (uint32_t)__builtin_ctzll(lines));
        result = result == 0 ? error : result;
    }
    return result;
}

static int is_visited(struct txn *t, uint64_t first, uint64_t lines)
{
    (void)t, (void)first, (void)lines;
    return 1;
}

bool log_filled_was_freed(struct txn *t)
{
    return t->freed == t->epoch && for_each_page(t, is_visited, true) != 0;
}

int log_unfill_freed(struct txn *t)
{
    return t->freed == t->epoch ? for_each_page(t, unfill_lines, true) : 0;
}

int log_unfill(struct txn *t)
{
    int freed = log_unfill_freed(t), others = for_each_page(t, unfill_lines, false);
    return freed != 0 ? freed : others;
}

static int compare_runs(const void *a, const void *b)
{
    uint64_t x = run_line(*(const uint64_t *)a), y = run_line(*(const uint64_t *)b);
    return (x > y) - (x < y);
}

void log_condense_filled(struct log_engine *k)
{
    uint64_t n = 0, end = 0;
    if (k->filled.count > 1)
        qsort(k->filled.items, k->filled.count, sizeof(uint64_t), compare_runs);
    for (uint64_t i = 0; i < k->filled.count; i++) {
        uint64_t run = filled(k)[i], from = max_u64(run_line(run), end);
        end = max_u64(run_line(run) + run_count(run), end);
        if (from < end)
            filled(k)[n++] = redo_run(from, end - from);
    }
    k->filled.count = n;
}

static int add_lines(struct txn *t, uint64_t first, uint64_t lines)
{
    for (; lines; lines &= lines - 1)
        changes_add(&t->view.changes, log_engine_of(t)->filled_from,
                    first + (uint32_t)__builtin_ctzll(lines), LINE_WORDS_ALL);
    return 0;
}

void log_add_filled(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    k->filled_from = t->view.changes.run_count;
    log_condense_filled(k);
    (void)for_each_page(t, add_lines, false);
}

void log_end_filled(struct txn *t, bool is_committed)
{
    struct log_engine *k = log_engine_of(t);
    log_end_early(t, is_committed);
    for (uint64_t i = 0; i < k->filled.count; i++) {
        uint64_t run = filled(k)[i], last = (run_line(run) + run_count(run) - 1) / PM_PAGE_LINES;
        for (uint64_t page = run_line(run) / PM_PAGE_LINES; page <= last; page++) {
            log_note_filled(t, (uint32_t)page, false);
            k->handed[page] = false;
        }
    }
    k->filled.count = 0;
    if (k->filled.room > FILLED_KEPT)
        vector_free(&k->filled);
}
