/*
 * Large values go straight to the file. What pm_write() hands over may be whole pages of a new object, 16 of
 * them or more. Memory never has these bytes: they are written to a chunk, where they will stay, as the
 * contents of a part of whole pages (LOG_PAGES). Home and view are mapped from there. The part's header is
 * still missing, and the commit writes it. Until then the part is *early*.
 *
 *   pm_write() ──► early ──┬── commit: the header ──────► mapped, as others (pages.c)
 *                          ├── a store to its pages ────► memory, and the part stays
 *                          └── rollback ────────────────► gone, and its room is free again
 *
 * Invariants
 *  E1  The early parts of a chunk follow one another from its end on, and nothing else is written there. The
 *      commit writes the headers of all of them. So there is no gap, at which recovery would stop.
 *  E2  No line of an early part has a piece, and nothing else of its pages was handed over before it. If the
 *      object was freed again, the commit drops its lines once, unless it logs them for somebody else.
 *  E3  Until the commit these lines are left (owners.c). So if there is no memory to map them, or after a
 *      rollback, whoever has them logs them, and it does not matter what home has there.
 *  E4  A store may bring its pages to memory. Then they stay there until the commit: the map says nothing of
 *      them.
 *  E5  If its pages are cut off again, for there was no memory for the rest of the value, the part is *lost*:
 *      home does not have what it has. It gets its header, and all its lines are dropped. So whoever gets
 *      them later logs them.
 */
#include "txn/log/deltas.h"

#include "base/checksum.h"

#include <string.h>

/* So many bytes are copied to the stage at once: whole pages. The part's checksum must be of what is written,
 * and the program's memory may change meanwhile. */
#define BLOCK (LOG_PART_LINES * PM_LINE)

/* Parts for which memory is kept between commits. */
#define EARLY_KEPT 1024

static struct early_part *early_at(const struct log_engine *k, uint64_t i)
{
    return (struct early_part *)k->early.items + i;
}

static uint32_t first_page(const struct early_part *e)
{
    return log_run_page(e->run);
}

static uint32_t page_count(const struct early_part *e)
{
    return log_run_pages(e->run);
}

static bool overlaps(const struct early_part *e, uint32_t first, uint32_t count)
{
    return first_page(e) < first + count && first < first_page(e) + page_count(e);
}

const struct early_part *log_early_of(const struct txn *t, uint32_t page)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t i = k->early.count; i-- > 0 && k->handed[page];)
        if (overlaps(early_at(k, i), page, 1))
            return early_at(k, i);
    return NULL;
}

void log_lose_early(struct txn *t, uint32_t first, uint32_t count)
{
    struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->early.count; i++)
        early_at(k, i)->is_lost |= overlaps(early_at(k, i), first, count);
}

/* ---- handed over ----------------------------------------------------------------------------- */

/* Pages from this one on that a part may have: all their lines are new, and nobody has stored to them. */
static uint32_t new_pages(const struct txn *t, uint32_t first, uint32_t most)
{
    uint32_t n = 0;
    for (; n < most; n++) {
        struct page_liveness live = t->upcalls.page_liveness(t->upcalls.context, first + n);
        if (live.after != UINT64_MAX || live.before != 0 || !log_page_is_untouched(t, first + n) ||
            log_engine_of(t)->mapped[first + n] || log_engine_of(t)->handed[first + n]) /* E2 */
            break;
    }
    return n;
}

/* Where the next part goes. If it needs a fresh chunk, that one is taken: `part->line` is 1. */
static bool find_room(struct txn *t, struct early_part *part)
{
    struct log_engine *k = log_engine_of(t);
    part->chunk = k->open[LOG_VALUES];
    part->line = part->chunk == 0 ? chunk_lines(t) : k->chunks[part->chunk].end;
    if (k->early.count > 0) {
        const struct early_part *last = early_at(k, k->early.count - 1);
        part->chunk = last->chunk;
        part->line = log_early_contents(last) + (uint32_t)run_count(last->run);
    }
    if (chunk_lines(t) - part->line >= LOG_PAGES_ROOM)
        return true;
    part->line = 1;
    return log_take_chunk(t, &part->chunk) == 0;
}

/* Write the contents, and sum them. */
static int write_contents(struct txn *t, struct early_part *part, const char *from)
{
    char *block = log_engine_of(t)->stage;
    const uint32_t place = log_early_place(t, part);
    const uint64_t bytes = run_count(part->run) * PM_LINE;
    struct checksum_stream sum;
    int error = 0;
    checksum_begin(&sum);
    for (uint64_t at = 0, n; at < bytes && error == 0; at += n) {
        n = min_u64(bytes - at, BLOCK);
        memcpy(block, from + at, n);
        checksum_add(&sum, block, n);
        error = log_store(t, place + at / PM_LINE, block, n);
    }
    part->sum = checksum_end(&sum);
    return error;
}

static bool write_early(struct txn *t, struct early_part *part, const char *from)
{
    struct log_engine *k = log_engine_of(t);
    const uint32_t first = first_page(part), end = first + page_count(part);
    for (uint32_t page = first; page < end; page++)
        log_set_left_bits(t, (uint64_t)page * PM_PAGE_LINES, UINT64_MAX, true); /* E3 */
    if (write_contents(t, part, from) != 0 || !log_map_early(t, part))
        return false;
    for (uint32_t page = first; page < end; page++) {
        k->handed[page] = true;
        log_note_filled(t, page, true); /* E4 */
    }
    k->early_lines += run_count(part->run);
    return true;
}

/* Not after a failure in this transaction. And what a failed commit has left in a free chunk must be erased
 * first, or it would be erased from the value. */
static bool may_write(struct txn *t, uint64_t offset)
{
    const struct log_engine *k = log_engine_of(t);
    return offset % PM_PAGE == 0 && log_makes_pages(t) && log_may_map(t) && k->drops &&
           k->early_failed != t->epoch && log_erase_stale(t) == 0;
}

uint64_t log_write_early(struct txn *t, uint64_t offset, const char *from, uint64_t bytes)
{
    struct log_engine *k = log_engine_of(t);
    const uint64_t most = min_u64(bytes / PM_PAGE, chunk_lines(t) / PM_PAGE_LINES),
                   least = LOG_PAGES_MIN / PM_PAGE_LINES;
    struct early_part part = {.is_lost = false};
    if (most < least || !may_write(t, offset))
        return 0;
    const uint32_t page = (uint32_t)(offset >> PM_PAGE_SHIFT),
                   count = new_pages(t, page, (uint32_t)most);
    if (count < least)
        return 0;
    if (!find_room(t, &part)) {
        k->early_failed = t->epoch;
        return 0;
    }
    const uint64_t room = chunk_lines(t) - log_early_contents(&part);
    part.run = redo_run(offset / PM_LINE,
                        min_u64((uint64_t)count * PM_PAGE_LINES, align_down(room, PM_PAGE_LINES)));
    struct early_part *noted = vector_push(&k->early, sizeof part);
    if (noted)
        *noted = part;
    if (noted && write_early(t, noted, from))
        return run_count(part.run) * PM_LINE;
    k->early_failed = t->epoch;
    k->early.count -= noted != NULL;
    if (part.line == 1)
        log_untake_chunk(t, part.chunk);
    return 0;
}

/* ---- at a commit or rollback ----------------------------------------------------------------- */

static bool has_freed(const struct txn *t, const struct early_part *e)
{
    uint64_t freed = 0;
    for (uint32_t n = 0; n < page_count(e) && freed == 0; n++)
        freed = log_freed_lines(t, first_page(e) + n);
    return freed != 0;
}

int log_unmap_freed_early(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    int error = 0;
    for (uint64_t i = 0; i < k->early.count && t->freed == t->epoch && error == 0; i++)
        if (!early_at(k, i)->is_lost && has_freed(t, early_at(k, i)))
            error = log_unmap_pages(t, first_page(early_at(k, i)));
    return error;
}

/* The lines of a page that are dropped, and that log_find_owners() has not listed. If the whole segment loses
 * its owner, it has listed them all. */
static uint64_t unlisted_lines(const struct txn *t, const struct early_part *e, uint32_t page)
{
    uint32_t segment = page / pages_per_segment(t->c);
    bool is_listed =
        table_word(home_table(t->c), segment) != 0 && table_word(shadow_table(t->c), segment) == 0;
    if (is_listed)
        return 0;
    return e->is_lost ? UINT64_MAX : log_freed_lines(t, page);
}

/* Lines that a later part of the record has are there. */
static int drop_page(struct txn *t, const struct early_part *e, uint32_t page)
{
    struct log_engine *k = log_engine_of(t);
    const uint32_t place = log_early_place(t, e) + (page - first_page(e)) * (uint32_t)PM_PAGE_LINES;
    int error = 0;
    for (uint64_t lines = unlisted_lines(t, e, page); lines && error == 0; lines &= lines - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(lines);
        const uint64_t line = (uint64_t)page * PM_PAGE_LINES + i;
        if (line_map_at(&k->map, line) == place + i)
            error = log_list_line(&k->dropped, 0, line);
    }
    return error;
}

int log_drop_early(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    int error = 0;
    for (uint64_t i = 0; i < k->early.count; i++) {
        const struct early_part *e = early_at(k, i);
        for (uint32_t n = 0; n < page_count(e) && error == 0; n++)
            error = drop_page(t, e, first_page(e) + n);
    }
    return error;
}

int log_discard_early(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    int error = 0;
    for (uint64_t i = 0; i < k->early.count && error == 0; i++)
        if (k->mapped[first_page(early_at(k, i))])
            error = log_discard_pages(t, first_page(early_at(k, i)));
    return error;
}

void log_take_early(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->early.count; i++) {
        const struct early_part *e = early_at(k, i);
        for (uint32_t n = 0; n < page_count(e) && !e->is_lost; n++)
            log_set_left_bits(t, (uint64_t)(first_page(e) + n) * PM_PAGE_LINES,
                              ~log_freed_lines(t, first_page(e) + n), false);
    }
}

void log_untake_early(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->early.count; i++)
        log_untake_lines(t, &early_at(k, i)->run, 1);
}

void log_end_early(struct txn *t, bool is_committed)
{
    struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->early.count; i++) {
        const struct early_part *e = early_at(k, i);
        for (uint32_t page = first_page(e), n = page_count(e); n > 0; n--, page++) {
            k->handed[page] = false;
            log_note_filled(t, page, false);
        }
        if (is_committed)
            log_keep_mapped(t, first_page(e), page_count(e));
        else if (e->line == 1)
            log_untake_chunk(t, e->chunk);
    }
    k->early.count = k->early_lines = 0;
    if (k->early.room > EARLY_KEPT)
        vector_free(&k->early);
}
