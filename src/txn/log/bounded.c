/*
 * Bounded memory (options.private_max). Home is memory that has the contents of the last commit. If memory
 * is bounded, home has a page only from its first access on, and until there is no room. A page that home
 * does not have is *absent*. The log has what is on it.
 *
 *             access: SIGBUS, log_fill_absent()
 *   ABSENT ---------------------------------------> PRESENT
 *          <---------------------------------------
 *             no room: the oldest unit goes first
 *
 * View and shadow read home through. So an access to any of the three may find an absent page. If accesses
 * run on from page to page, the rest of a unit is filled at once.
 *
 * Invariants
 *  B1  An absent page has what the map says. So a page may become absent only if home has what the log says
 *      there: it was not filled by pm_write() in this transaction (F2), and no relocation has changed it.
 *  B2  Home has each page that is open in the view. So a system call may store where pm_dirty() has announced
 *      it.
 *  B3  While the map is ahead of the medium, no page is filled. What a commit needs then it has read before.
 *      So no page becomes absent while libpm has the page lock for something else.
 *
 * Which pages are in use the kernel does not tell, so the oldest unit goes, as if it were a queue.
 *
 * A unit of the map (units.c) says where just the lines are of a unit here. It comes before the first page of
 * home, and may leave after the last one. It counts as a page, for its groups may have one for themselves.
 * Blocks of the map count as what they take.
 */
#include "txn/log/deltas.h"

#include "base/panic.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* So many pages become absent together, and at most so many are filled at once. */
#define UNIT_PAGES (LOG_UNIT_LINES / PM_PAGE_LINES)
static_assert(UNIT_PAGES == 16, "a bit for each page, and more");
/* If there is no room, so many units are looked at when a page is filled, and when a transaction ends. A
 * unit that has just come may have to stay for some transactions. So at the end of one, LOOKS_UNIT more are
 * looked at for each unit that has come. */
#define LOOKS_FILL 4
#define LOOKS_END  64
#define LOOKS_UNIT 4

/* One instruction may need several pages at once: two for a load that lies across them, and 32 for a gather
 * of AVX-512. So a page that is filled again so soon displaces none. */
#define TOGETHER_MAX 32

/* At most this share of the pages should be units of the map that have changed. With their blocks they take
 * twice as much. A checkpoint writes them all, so one that comes early costs much more than pages that are
 * filled again. */
#define MAP_SHARE 4

/* What is known of a unit: a bit for each page that is present, and these. Pages of metadata that home has
 * from the beginning have no bit. */
#define UNIT_QUEUED (1u << UNIT_PAGES)
#define UNIT_FILLED (2u << UNIT_PAGES) /* the open transaction has filled lines of it: it stays */
#define UNIT_MAPPED (4u << UNIT_PAGES) /* the map has it */

struct bounded {
    uint32_t *unit;  /* for each */
    uint32_t *queue; /* units, oldest first: a ring */
    uint64_t units;  /* of the container; the ring has room for as many */
    uint64_t oldest, count;
    uint64_t pages;              /* that are present, and units of the map */
    uint64_t pages_max;          /* of these, and of the map's blocks */
    uint64_t came;               /* pages, since a transaction ended */
    uint32_t last[TOGETHER_MAX]; /* pages that were filled last for the program: a ring */
    uint64_t fills;              /* for the program */
    char *stage;                 /* pages while they are put together */
};

int log_bound(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    struct tables *tables = &t->c->tables;
    if (t->c->watcher < 0)
        return 0;
    struct bounded *b = k->bounded = calloc(1, sizeof *b);
    if (!b)
        return -ENOMEM;
    b->units = divide_up(t->c->max_size >> PM_PAGE_SHIFT, UNIT_PAGES);
    b->pages_max = UINT64_MAX;
    b->unit = tables_take(tables, b->units * sizeof *b->unit);
    b->queue = tables_take(tables, b->units * sizeof *b->queue);
    b->stage = aligned_alloc(PM_PAGE, UNIT_PAGES * PM_PAGE);
    if (!b->stage)
        return -ENOMEM;
    map_small_pages(k->map.groups, k->map.count * sizeof *k->map.groups);
    t->c->filler = t;
    t->c->fill = log_fill_absent;
    return 0;
}

void log_set_bound(struct txn *t, uint64_t bytes)
{
    if (!log_engine_of(t)->bounded)
        return;
    log_engine_of(t)->bounded->pages_max = bytes >> PM_PAGE_SHIFT;
    /* Recovery may have read it from end to end. */
    map_read_singly(t->c->file, container_file_bytes(t->c));
}

void log_unbound(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    t->c->fill = NULL;
    if (k->bounded)
        free(k->bounded->stage);
    free(k->bounded);
    k->bounded = NULL;
}

static uint32_t pages_of(const struct txn *t)
{
    return (uint32_t)(container_bytes(t->c) >> PM_PAGE_SHIFT);
}

static void enqueue(struct bounded *b, uint32_t unit)
{
    if (b->unit[unit] & UNIT_QUEUED)
        return;
    b->unit[unit] |= UNIT_QUEUED;
    b->queue[(b->oldest + b->count++) % b->units] = unit;
}

static uint32_t dequeue(struct bounded *b)
{
    uint32_t unit = b->queue[b->oldest];
    b->oldest = (b->oldest + 1) % b->units;
    b->count--;
    b->unit[unit] &= ~UNIT_QUEUED;
    return unit;
}

static bool is_present(const struct bounded *b, uint32_t page)
{
    return b->unit[page / UNIT_PAGES] >> page % UNIT_PAGES & 1;
}

void log_note_present(struct txn *t, uint32_t first, uint32_t count)
{
    struct bounded *b = log_engine_of(t)->bounded;
    for (uint32_t page = first; b && page < first + count; page++) {
        b->came += !is_present(b, page);
        b->pages += !is_present(b, page);
        b->unit[page / UNIT_PAGES] |= 1u << page % UNIT_PAGES;
        enqueue(b, page / UNIT_PAGES);
    }
}

void log_note_absent(struct txn *t, uint32_t first, uint32_t count)
{
    struct bounded *b = log_engine_of(t)->bounded;
    for (uint32_t page = first; b && page < first + count; page++) {
        b->pages -= is_present(b, page);
        b->unit[page / UNIT_PAGES] &= ~(1u << page % UNIT_PAGES);
    }
}

void log_note_filled(struct txn *t, uint32_t page, bool filled)
{
    struct bounded *b = log_engine_of(t)->bounded;
    if (b && filled)
        b->unit[page / UNIT_PAGES] |= UNIT_FILLED;
    else if (b)
        b->unit[page / UNIT_PAGES] &= ~UNIT_FILLED;
}

bool log_is_absent(const struct txn *t, uint64_t line)
{
    const struct bounded *b = log_engine_of(t)->bounded;
    uint32_t page = (uint32_t)(line / PM_PAGE_LINES);
    return b && !is_present(b, page);
}

void log_note_unit(const struct txn *t, uint64_t unit, bool present)
{
    struct bounded *b = log_engine_of(t)->bounded;
    if (!b || present == !!(b->unit[unit] & UNIT_MAPPED))
        return;
    b->unit[unit] ^= UNIT_MAPPED;
    b->pages += present ? 1 : -UINT64_C(1);
    if (present)
        enqueue(b, (uint32_t)unit);
}

uint64_t log_units_max(const struct txn *t)
{
    const struct bounded *b = log_engine_of(t)->bounded;
    return b ? b->pages_max / MAP_SHARE : UINT64_MAX;
}

/* ---- from present to absent ------------------------------------------------------------------ */

static bool is_free(const struct txn *t, uint32_t page)
{
    uint32_t segment = page / pages_per_segment(t->c);
    return table_word(home_table(t->c), segment) == 0 &&
           table_word(shadow_table(t->c), segment) == 0;
}

/* Metadata stays: the allocator needs it often. */
static bool may_leave(const struct txn *t, uint32_t page)
{
    return is_present(log_engine_of(t)->bounded, page) && log_page_is_untouched(t, page) &&
           (segments_page_is_data(t, page) || is_free(t, page));
}

/* Those pages of a unit become absent that may. */
static void leave(struct txn *t, uint32_t unit)
{
    uint32_t first = unit * UNIT_PAGES, end = first + UNIT_PAGES;
    for (uint32_t page = first, run; page < end; page += run + 1) {
        for (run = 0; page + run < end && may_leave(t, page + run);)
            run++;
        log_note_absent(t, page, run);
        if (run > 0)
            file_punch(t->c->home_fd, (uint64_t)page << PM_PAGE_SHIFT,
                       (uint64_t)(page + run) << PM_PAGE_SHIFT);
        t->pages.evicted += run;
    }
    if ((log_engine_of(t)->bounded->unit[unit] & ((1u << UNIT_PAGES) - 1)) == 0)
        log_drop_unit(t, unit);
}

static uint64_t pages_taken(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return k->bounded->pages + k->map.known * sizeof *k->map.blocks / PM_PAGE;
}

/* If there are too many pages, look at some units. An opening that relocates changes home in place (B1). */
static void make_room(struct txn *t, uint64_t looks)
{
    struct bounded *b = log_engine_of(t)->bounded;
    bool relocates = t->c->relocates || t->c->pointers_target != 0;
    for (; looks > 0 && pages_taken(t) > b->pages_max && b->count > 0 && !relocates; looks--) {
        uint32_t unit = dequeue(b);
        if (!(b->unit[unit] & UNIT_FILLED))
            leave(t, unit);
        if (b->unit[unit] != 0)
            enqueue(b, unit);
    }
}

void log_keep_bound(struct txn *t)
{
    struct bounded *b = log_engine_of(t)->bounded;
    if (!b)
        return;
    make_room(t, LOOKS_END + b->came * LOOKS_UNIT / UNIT_PAGES);
    b->came = 0;
}

/* ---- from absent to present ------------------------------------------------------------------ */

/* -errno */
static int fill_pages(struct txn *t, uint32_t first, uint32_t count)
{
    char *stage = log_engine_of(t)->bounded->stage;
    for (uint32_t i = 0; i < count; i++)
        log_read_page(t, first + i, stage + ((uint64_t)i << PM_PAGE_SHIFT));
    int error = absent_fill(t->c->watcher, t->c->home + ((uint64_t)first << PM_PAGE_SHIFT), stage,
                            (size_t)count << PM_PAGE_SHIFT);
    if (error == 0)
        log_note_present(t, first, count);
    return error;
}

/* Whether home has a page of its own, or one that is mapped from the file. */
static bool is_there(const struct log_engine *k, uint32_t page)
{
    return is_present(k->bounded, page) || k->mapped[page];
}

/* Pages to fill from this one on. If the one before it is there, accesses run on: then up to the end of its
 * unit. */
static uint32_t pages_from(const struct txn *t, uint32_t page)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t end = page + 1, most = (uint32_t)min_u64(align_up(end, UNIT_PAGES), pages_of(t));
    bool runs_on = page > 0 && is_there(k, page - 1);
    while (runs_on && end < most && !is_there(k, end))
        end++;
    return end - page;
}

/* Fill a page. False: the fault has another reason. */
static bool fill(struct txn *t, uint32_t page)
{
    const struct log_engine *k = log_engine_of(t);
    if (page >= pages_of(t) || k->mapped[page])
        return false;
    assert(!k->is_ahead); /* B3 */
    int error = fill_pages(t, page, pages_from(t, page));
    if (error == -ENOENT) /* not all are of one mapping */
        error = fill_pages(t, page, 1);
    if (error != 0)
        panic(t->c->path, (uint64_t)page << PM_PAGE_SHIFT,
              "no memory for the page that is accessed here; the last commit stands", -error);
    return true;
}

int log_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    int error = view_dirty(t, offset, bytes);
    if (error != 0 || !log_engine_of(t)->bounded)
        return error;
    for (uint64_t at = offset; at < offset + bytes; at = align_up(at + 1, PM_PAGE))
        (void)*(const volatile char *)(t->c->base + at);
    return 0;
}

/* Whether a page was filled a short time ago. Note that it is now. */
static bool came_back(struct bounded *b, uint32_t page)
{
    bool found = false;
    for (int i = 0; i < TOGETHER_MAX; i++)
        found |= b->last[i] == page;
    b->last[b->fills++ % TOGETHER_MAX] = page;
    return found;
}

bool log_fill_absent(struct txn *t, uint64_t offset)
{
    uint32_t page = (uint32_t)(offset >> PM_PAGE_SHIFT);
    if (lock_is_ours(&t->lock))
        return fill(t, page);
    lock_acquire(&t->lock);
    if (!came_back(log_engine_of(t)->bounded, page))
        make_room(t, LOOKS_FILL);
    bool filled = fill(t, page);
    lock_release(&t->lock);
    return filled;
}
