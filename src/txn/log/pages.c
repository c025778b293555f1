/*
 * Pages that are mapped from the file. A part of whole pages (LOG_PAGES) has them as memory needs them. So
 * home and view can be mappings of the file there, and memory has no copy. They are mapped when the container
 * is opened, and when bytes are handed over (early.c), or after that commit.
 *
 *   memory ---- log_map_pages() ---> mapped ---- log_unmap_pages() ---> memory
 *
 * Invariants
 *  M1  A mapped page is closed, and has no private copy. The map, or its early part, says where its lines
 *      are, one behind the other.
 *  M2  It has memory again before it is opened, before any line of it gets another place in the file, and
 *      before its memory gets another owner (L15).
 *
 * A page comes back with the whole run that was mapped with it. So the kernel never needs more maps.
 */
#define _GNU_SOURCE
#include "txn/log/log.h"

#include "base/panic.h"

#include <stdatomic.h>
#include <string.h>

/* Each run costs the kernel up to four maps, and a process may have 65,530. So all containers share these. */
#define MAPPED_RUNS_MAX 8192
static atomic_uint mapped_runs;

static void count_run(struct txn *t)
{
    log_engine_of(t)->mapped_runs++;
    atomic_fetch_add(&mapped_runs, 1);
}

static void uncount_runs(struct txn *t, uint32_t runs)
{
    log_engine_of(t)->mapped_runs -= runs;
    atomic_fetch_sub(&mapped_runs, runs);
}

void log_forget_mapped(struct txn *t)
{
    uncount_runs(t, log_engine_of(t)->mapped_runs);
}

/* What `mapped` has of a page. */
enum mapped {
    MAPPED_NOT,
    MAPPED,
    MAPPED_EARLY, /* from an early part: the map does not say where */
};

/* Pages that lie together in the file, and where. */
struct pages_there {
    uint32_t first, count;
    uint64_t place; /* offset in the file */
};

static uint64_t offset_of(uint32_t page)
{
    return (uint64_t)page << PM_PAGE_SHIFT;
}

static size_t bytes_of(struct pages_there p)
{
    return (size_t)p.count << PM_PAGE_SHIFT;
}

/* Where the map says that a page is. */
static uint64_t place_of(const struct txn *t, uint32_t page)
{
    return log_entry(t, (uint64_t)page * PM_PAGE_LINES) * (uint64_t)PM_LINE;
}

static int map_from_file(const struct txn *t, enum map_kind kind, char *where, struct pages_there p)
{
    return map_file(kind, where + offset_of(p.first), bytes_of(p), t->c->fd, p.place,
                    kind == MAP_VIEW_SHARED && t->c->synchronous);
}

static int map_from_memory(const struct txn *t, enum map_kind kind, char *where,
                           struct pages_there p)
{
    char *begin = where + offset_of(p.first);
    int error = map_file(kind, begin, bytes_of(p), t->c->home_fd, offset_of(p.first), false);
    return error == 0 ? container_watch(t->c, begin, bytes_of(p)) : error;
}

/* Pages that a relocation changes in home must be memory, also those of one that was interrupted. */
bool log_may_map(const struct txn *t)
{
    const struct container *c = t->c;
    bool relocates = c->relocates || c->pointers_target != 0;
    return !c->readonly && !relocates && !c->translated &&
           atomic_load(&mapped_runs) < MAPPED_RUNS_MAX;
}

/* Home and view are memory again. */
static int map_memory(const struct txn *t, struct pages_there p)
{
    enum map_kind home = t->c->watcher >= 0 ? MAP_HOME_ABSENT : MAP_HOME_SHARED;
    int error = map_from_memory(t, home, t->c->home, p);
    if (error == 0 && log_engine_of(t)->maps_view)
        error = map_from_memory(t, MAP_VIEW_COPY, t->c->base, p);
    return error;
}

/* Pages could be mapped neither from the file nor, all of them, from memory. They count as mapped if memory
 * has the same bytes. */
static void fill_memory(struct txn *t, struct pages_there p)
{
    int error = file_write(t->c->home_fd, t->c->file + p.place, bytes_of(p), offset_of(p.first));
    if (error != 0)
        panic(t->c->path, offset_of(p.first),
              "no memory for the value that is handed over here; the last commit stands", -error);
}

static bool map_pages(struct txn *t, struct pages_there p, enum mapped how)
{
    struct log_engine *k = log_engine_of(t);
    if (!log_may_map(t))
        return false;
    int error = map_from_file(t, MAP_VIEW_SHARED, t->c->home, p);
    if (error == 0 && k->maps_view)
        error = map_from_file(t, MAP_VIEW_COPY, t->c->base, p);
    if (error != 0 && (map_memory(t, p) == 0 || !k->maps_view))
        return false;
    if (error != 0 && how == MAPPED_EARLY)
        fill_memory(t, p);
    if (error == 0 && k->maps_view)
        file_punch(t->c->home_fd, offset_of(p.first), offset_of(p.first + p.count));
    memset(k->mapped + p.first, how, p.count);
    log_note_absent(t, p.first, p.count);
    count_run(t);
    return true;
}

bool log_map_pages(struct txn *t, uint32_t first, uint32_t count)
{
    return map_pages(t, (struct pages_there){first, count, place_of(t, first)}, MAPPED);
}

static struct pages_there pages_of_early(const struct txn *t, const struct early_part *e)
{
    return (struct pages_there){log_run_page(e->run), log_run_pages(e->run),
                                log_early_place(t, e) * (uint64_t)PM_LINE};
}

bool log_map_early(struct txn *t, const struct early_part *e)
{
    return map_pages(t, pages_of_early(t, e), MAPPED_EARLY);
}

void log_keep_mapped(struct txn *t, uint32_t first, uint32_t count)
{
    if (log_engine_of(t)->mapped[first] == MAPPED_EARLY)
        memset(log_engine_of(t)->mapped + first, MAPPED, count);
}

/* The pages that were mapped with a page. */
static struct pages_there run_of(const struct txn *t, uint32_t page)
{
    const uint8_t *mapped = log_engine_of(t)->mapped;
    const uint32_t pages = (uint32_t)(t->c->max_size >> PM_PAGE_SHIFT);
    uint32_t first = page, end = page + 1;
    if (mapped[page] == MAPPED_EARLY)
        return pages_of_early(t, log_early_of(t, page));
    while (first > 0 && mapped[first - 1] == MAPPED &&
           place_of(t, first - 1) + PM_PAGE == place_of(t, first))
        first--;
    while (end < pages && mapped[end] == MAPPED &&
           place_of(t, end - 1) + PM_PAGE == place_of(t, end))
        end++;
    return (struct pages_there){first, end - first, place_of(t, first)};
}

/* Memory again. Nobody needs what the pages have. */
static int map_back(struct txn *t, struct pages_there p)
{
    int error = map_memory(t, p);
    if (error != 0)
        return error;
    memset(log_engine_of(t)->mapped + p.first, MAPPED_NOT, p.count);
    uncount_runs(t, 1);
    return 0;
}

/* Memory again, with the same contents. */
static int copy_back(struct txn *t, struct pages_there p)
{
    int error = file_write(t->c->home_fd, t->c->file + p.place, bytes_of(p), offset_of(p.first));
    if (error == 0)
        error = map_back(t, p);
    if (error == 0)
        log_note_present(t, p.first, p.count);
    return error;
}

int log_unmap_pages(struct txn *t, uint32_t page)
{
    return log_engine_of(t)->mapped[page] ? copy_back(t, run_of(t, page)) : 0;
}

int log_discard_pages(struct txn *t, uint32_t page)
{
    return map_back(t, run_of(t, page));
}

int log_unmap_range(struct txn *t, uint32_t first, uint32_t count)
{
    int error = 0;
    for (uint32_t page = first;
         log_engine_of(t)->mapped_runs > 0 && page < first + count && error == 0; page++)
        error = log_unmap_pages(t, page);
    return error;
}

int log_unmap_lines(struct txn *t, uint64_t run)
{
    const uint64_t line = run_line(run), behind = line + run_count(run);
    const uint32_t first = (uint32_t)divide_up(line, PM_PAGE_LINES),
                   end = (uint32_t)(behind / PM_PAGE_LINES);
    int error = 0;
    for (uint32_t page = (uint32_t)(line / PM_PAGE_LINES);
         page < divide_up(behind, PM_PAGE_LINES) && error == 0; page++) {
        if (!log_engine_of(t)->mapped[page])
            continue;
        const struct pages_there p = run_of(t, page);
        const bool loses_all = p.first >= first && p.first + p.count <= end;
        error = loses_all ? map_back(t, p) : copy_back(t, p);
    }
    return error;
}

int log_release(struct txn *t, uint32_t first, uint32_t count)
{
    int error = log_unmap_range(t, first, count);
    if (error != 0)
        return error;
    log_lose_early(t, first, count);
    log_note_absent(t, first, count);
    return 0;
}

/* Whether commits change some of these pages in place: words of bitmaps or pointer maps. Only a forged file
 * has such pages. libpm logs words line by line, and then the part has lines that are not the newest. */
static bool has_words(const struct txn *t, uint32_t first, uint32_t count)
{
    for (uint32_t page = first; page < first + count; page++) {
        uint64_t word = table_word(shadow_table(t->c), page / pages_per_segment(t->c));
        if (segment_kind(word) != SEGMENT_FREE && !segments_page_is_data(t, page))
            return true;
    }
    return false;
}

int log_map_view(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t end = (uint32_t)(container_bytes(t->c) >> PM_PAGE_SHIFT), left = k->mapped_runs;
    int error = 0;
    k->maps_view = true;
    for (uint32_t page = 0; page < end && left > 0 && error == 0; page++) {
        if (!k->mapped[page])
            continue;
        struct pages_there p = run_of(t, page);
        bool stays =
            !has_words(t, p.first, p.count) && map_from_file(t, MAP_VIEW_COPY, t->c->base, p) == 0;
        error = stays ? 0 : log_unmap_pages(t, page);
        page += p.count - 1;
        left--;
    }
    return error;
}

static bool are_untouched(const struct txn *t, uint32_t first, uint32_t count)
{
    for (uint32_t page = first; page < first + count; page++)
        if (!log_page_is_untouched(t, page))
            return false;
    return true;
}

void log_map_planned(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->plan.count; i++) {
        const struct planned_part *part = (const struct planned_part *)k->plan.items + i;
        /* If an early part is not mapped, something has happened to it. */
        if (!part->pages || part->is_early)
            continue;
        uint64_t run = ((const uint64_t *)k->pieces.items)[part->first_run];
        uint32_t first = log_run_page(run), count = log_run_pages(run);
        if (are_untouched(t, first, count))
            (void)log_map_pages(t, first, count); /* if not, they stay in memory */
    }
}

/* ---- before a store -------------------------------------------------------------------------- */

/* Pages that are opened with `page` are of its segment. */
static int unmap_before_store(struct txn *t, uint32_t page)
{
    uint32_t in_segment = pages_per_segment(t->c);
    return log_unmap_range(t, page, in_segment - page % in_segment);
}

int log_open_page(struct txn *t, uint32_t page)
{
    int error = unmap_before_store(t, page);
    return error == 0 ? view_open_page(t, page) : error;
}

int log_open_marked(struct txn *t, uint32_t page)
{
    int error = unmap_before_store(t, page);
    return error == 0 ? view_open_marked(t, page) : error;
}
