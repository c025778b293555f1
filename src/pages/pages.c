/*
 * Opens and closes pages by mprotect(2), a run of neighbours at a time, since each call is expensive. The
 * kernel limits the maps of a process. If mprotect(2) fails for this reason, pages_evict() closes some runs,
 * and the call is repeated.
 *
 * The three tables have an entry for each page that the container may ever have. The kernel gives them
 * memory where they are used. After a large transaction the list returns its memory.
 */
#define _GNU_SOURCE
#include "pages/pages.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* One mprotect may span at most this many pages from one closed page to the next. Beyond this a second
 * call is cheaper. */
#define CLOSE_GAP_MAX 512
/* Runs closed when the map limit is reached. Each run gives back up to two maps of about 65,000. The cost
 * of the sweep is spread over as many faults. */
#define EVICT_RUNS 4096
/* At most this many entries keep memory between transactions. They suffice for the pages that stay open
 * across a commit. */
#define ENTRIES_KEPT 4096

static uint64_t pages_max(const struct container *c)
{
    return c->max_size >> PM_PAGE_SHIFT;
}

void pages_load(struct pages *pages, struct container *c)
{
    uint64_t n = pages_max(c);
    *pages = (struct pages){.c = c};
    pages->flags = tables_take(&c->tables, n);
    pages->heat = tables_take(&c->tables, n);
    pages->opened = tables_take(&c->tables, n * sizeof *pages->opened);
}

static int protect(struct pages *pages, uint32_t first, uint32_t count, int protection)
{
    char *view = pages->c->base + ((uint64_t)first << PM_PAGE_SHIFT);
    return mprotect(view, (size_t)count << PM_PAGE_SHIFT, protection) == 0 ? 0 : -errno;
}

uint32_t pages_evict(struct pages *pages)
{
    uint32_t end = (uint32_t)(container_bytes(pages->c) >> PM_PAGE_SHIFT), runs = 0;
    uint32_t page = pages->hand < end ? pages->hand : 0;
    /* Begin between two runs: otherwise the first run would be only a part of a run. */
    while (page > 0 && pages->flags[page] & PAGE_OPEN)
        page--;
    for (uint32_t left = end; left > 0 && runs < EVICT_RUNS;) {
        uint32_t run = 0;
        while (page + run < end && pages->flags[page + run] & PAGE_OPEN)
            run++;
        if (run > 0 && protect(pages, page, run, PROT_READ) == 0) {
            for (uint32_t i = 0; i < run; i++)
                page_clear(pages, page + i, PAGE_OPEN);
            pages->evicted += run;
            runs++;
        }
        uint32_t step = run > 0 ? run : 1;
        left = left > step ? left - step : 0;
        page = page + step < end ? page + step : 0;
    }
    pages->hand = page;
    return runs;
}

static int protect_or_evict(struct pages *pages, uint32_t first, uint32_t count, int protection)
{
    int error;
    while ((error = protect(pages, first, count, protection)) == -ENOMEM)
        if (pages_evict(pages) == 0)
            break;
    return error;
}

/* The number of pages from `page` on that are closed and of one kind. They lie in its segment; at most
 * `most`. */
static uint32_t extent(const struct pages *pages, uint32_t page, uint32_t most)
{
    uint32_t per_segment = (uint32_t)(pages->c->segment_size >> PM_PAGE_SHIFT);
    uint32_t room = per_segment - page % per_segment, n = 1;
    if (most > room)
        most = room;
    while (n < most && !((pages->flags[page + n] ^ pages->flags[page]) &
                         (PAGE_OPEN | PAGE_LOGGED | PAGE_FRESH | PAGE_TRANSLATED)))
        n++;
    return n;
}

/* The stream that `page` continues, or else the oldest one, for a new stream. */
static struct page_stream *stream_of(struct pages *pages, uint32_t page, unsigned streams)
{
    for (unsigned i = 0; i < streams; i++)
        if (pages->streams[i].next == page)
            return &pages->streams[i];
    unsigned oldest = pages->oldest_stream;
    pages->oldest_stream = (oldest + 1) % streams;
    return &pages->streams[oldest];
}

struct page_window pages_window(struct pages *pages, uint32_t page, uint32_t least, uint32_t most,
                                unsigned streams)
{
    struct page_stream *stream = stream_of(pages, page, streams);
    bool runs_on = stream->next == page;
    uint64_t wanted = min_u64(max_u64(runs_on ? 2 * (uint64_t)stream->window : 1, least), most);
    uint32_t count = extent(pages, page, (uint32_t)wanted);
    *stream = (struct page_stream){.next = page + count, .window = count};
    return (struct page_window){.count = count, .runs_on = runs_on};
}

int pages_open(struct pages *pages, uint32_t first, uint32_t count)
{
    int error = protect_or_evict(pages, first, count, PROT_READ | PROT_WRITE);
    for (uint32_t i = 0; i < count && error == 0; i++) {
        page_clear(pages, first + i, PAGE_JUDGED);
        page_set(pages, first + i, PAGE_OPEN);
    }
    return error;
}

static int close_all(struct pages *pages, uint32_t first, uint32_t count, int protection)
{
    int error = protect_or_evict(pages, first, count, protection);
    for (uint32_t i = 0; i < count && error == 0; i++)
        page_clear(pages, first + i, PAGE_OPEN);
    return error;
}

int pages_hide(struct pages *pages, uint32_t first, uint32_t count)
{
    return close_all(pages, first, count, PROT_NONE);
}

int pages_close(struct pages *pages, uint32_t first, uint32_t count)
{
    if (!pages->c->translated)
        return close_all(pages, first, count, PROT_READ);
    int error = 0;
    for (uint32_t page = first, run = 0; page < first + count && error == 0; page += run + 1) {
        for (run = 0; page + run < first + count && pages->flags[page + run] & PAGE_TRANSLATED;)
            run++;
        if (run > 0)
            error = close_all(pages, page, run, PROT_READ);
    }
    return error;
}

/* True if all of [from, to) is closed already, so that protecting it again changes nothing. */
static bool all_closed(const struct pages *pages, uint32_t from, uint32_t to)
{
    if (to - from > CLOSE_GAP_MAX)
        return false;
    for (uint32_t page = from; page < to; page++)
        if (pages->flags[page] & PAGE_OPEN)
            return false;
    return true;
}

int pages_close_sorted(struct pages *pages, const struct page_entry *entries, uint32_t count,
                       bool (*keep)(const struct page_entry *))
{
    uint32_t first = 0, end = 0; /* the run so far, empty at the start */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t page = entries[i].page;
        if (keep(&entries[i]) || !(pages->flags[page] & PAGE_OPEN))
            continue;
        if (end > first && all_closed(pages, end, page)) {
            end = page + 1;
            continue;
        }
        int error = end > first ? pages_close(pages, first, end - first) : 0;
        if (error != 0)
            return error;
        first = page;
        end = page + 1;
    }
    return end > first ? pages_close(pages, first, end - first) : 0;
}

static bool keep_none(const struct page_entry *entry)
{
    (void)entry;
    return false;
}

int pages_close_listed(struct pages *pages)
{
    pages_sort(pages);
    return pages_close_sorted(pages, pages->opened, pages->count, keep_none);
}

void pages_unlist(struct pages *pages)
{
    uint32_t peak = pages->count;
    for (uint32_t i = 0; i < peak; i++)
        page_clear(pages, pages->opened[i].page, PAGE_LISTED | PAGE_LOGGED);
    pages->count = 0;
    pages_trim(pages, peak);
}

void pages_unlist_from(struct pages *pages, uint32_t first)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pages->count; i++)
        if (pages->opened[i].page < first)
            pages->opened[kept++] = pages->opened[i];
        else
            page_clear(pages, pages->opened[i].page, PAGE_LISTED | PAGE_LOGGED);
    pages->count = kept;
}

bool pages_stay_hot(struct pages *pages, uint32_t page, bool changed)
{
    enum { HEAT_MAX = 5 };
    unsigned heat = pages->heat[page] >> 4, idle = pages->heat[page] & 15;
    idle = changed ? 0 : idle + 1;
    if (changed && heat < HEAT_MAX)
        heat++;
    bool stay = idle < 1u << heat >> 1; /* heat 1 to 5: cools after 1, 2, 4, 8, 16 idle commits */
    if (!stay) {
        heat = heat > 0 ? heat - 1 : 0;
        idle = 0;
    }
    pages->heat[page] = (uint8_t)(heat << 4 | idle);
    return stay;
}

void pages_reset(struct pages *pages, uint32_t first, uint32_t count, bool fresh)
{
    for (uint32_t page = first; page < first + count; page++) {
        assert(!(pages->flags[page] & (PAGE_OPEN | PAGE_LOGGED)));
        page_clear(pages, page, (unsigned)~(PAGE_LISTED | PAGE_PRIVATE | PAGE_TRANSLATED));
        page_set(pages, page, fresh ? PAGE_FRESH : 0);
    }
    memset(pages->heat + first, 0, count);
}

void pages_forget(struct pages *pages, uint32_t first, uint32_t count)
{
    for (uint32_t page = first; page < first + count; page++) {
        assert(!(pages->flags[page] & (PAGE_OPEN | PAGE_LOGGED | PAGE_LISTED)));
        pages->private_count -= (pages->flags[page] & PAGE_PRIVATE) != 0;
        page_clear(pages, page, UINT8_MAX);
    }
}

static int compare_pages(const void *a, const void *b)
{
    uint32_t x = ((const struct page_entry *)a)->page, y = ((const struct page_entry *)b)->page;
    return (x > y) - (x < y);
}

void pages_sort(struct pages *pages)
{
    for (uint32_t i = 1; i < pages->count; i++)
        if (pages->opened[i - 1].page > pages->opened[i].page) {
            qsort(pages->opened, pages->count, sizeof *pages->opened, compare_pages);
            return;
        }
}

bool pages_are_valid(const struct pages *pages, unsigned open)
{
    uint32_t end = (uint32_t)(container_bytes(pages->c) >> PM_PAGE_SHIFT), listed = 0;
    for (uint32_t page = 0; page < end; page++) {
        uint8_t f = pages->flags[page];
        if ((f & PAGE_LOGGED && !(f & PAGE_LISTED)) ||
            (f & PAGE_OPEN && open && !(f & open)) ||
            (f & PAGE_OPEN && !(f & PAGE_TRANSLATED) && pages->c->translated))
            return false;
        listed += (f & PAGE_LISTED) != 0;
    }
    for (uint32_t i = 0; i < pages->count; i++)
        if (!(pages->flags[pages->opened[i].page] & PAGE_LISTED))
            return false;
    return listed == pages->count;
}

void pages_trim(struct pages *pages, uint32_t peak)
{
    if (peak <= ENTRIES_KEPT)
        return;
    uintptr_t from = align_up((uintptr_t)(pages->opened + ENTRIES_KEPT), PM_PAGE);
    uintptr_t end = align_up((uintptr_t)(pages->opened + peak), PM_PAGE);
    madvise((void *)from, end - from, MADV_DONTNEED);
}
