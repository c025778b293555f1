#define _GNU_SOURCE
#include "page_state.h"

#include "api/api.h"
#include "discovery/exclusions.h"
#include "txn/log/log.h"

#include <stdlib.h>
#include <sys/mman.h>

static uint8_t flags_before;
static uint32_t count_before;

void contradict(pm_container *c, uint32_t page, enum contradiction what)
{
    struct pages *pages = &c->txn.pages;
    uint8_t *flags = &pages->flags[page];
    flags_before = *flags;
    count_before = pages->count;
    *flags = 0;
    switch (what) {
    case LOGGED_BUT_NOT_LISTED:
        *flags = PAGE_LOGGED;
        break;
    case OPEN_WITHOUT_REASON:
        *flags = PAGE_OPEN;
        break;
    case LISTED_BUT_NOT_IN_THE_LIST:
        *flags = PAGE_LISTED;
        break;
    case IN_THE_LIST_BUT_NOT_LISTED:
        pages_list_once(pages, page, false);
        *flags = 0;
        break;
    }
}

void agree(pm_container *c, uint32_t page)
{
    c->txn.pages.flags[page] = flags_before;
    c->txn.pages.count = count_before;
}

void leave_mark(pm_container *c, const void *p)
{
    struct tracker *k = &c->txn.tracker;
    k->marked[k->count++] = (uint64_t)((const char *)p - c->container.base) / PM_LINE;
}

uint64_t mark_at_once(pm_container *c, const void *p, uint64_t times)
{
    uint64_t line = (uint64_t)((const char *)p - c->container.base) / PM_LINE;
    for (uint64_t i = 0; i < times; i++)
        track_mark(&c->txn, line, MARK_AHEAD);
    return c->txn.tracker.count;
}

uint64_t lines_of_objects(const pm_container *c)
{
    return c->txn.tracker.object_lines;
}

void free_beside_commit(pm_container *c, void *object)
{
    exclusions_hide(&c->txn);
    pm_free(object);
    exclusions_show(&c->txn, true);
}

uint64_t base_epoch_in_memory(const pm_container *c)
{
    return file_state(&c->container)->base_epoch;
}

static bool has(const struct chunk_list *list, uint32_t chunk)
{
    uint32_t i = 0;
    while (i < list->count && list->items[i] != chunk)
        i++;
    return i < list->count;
}

/* All images may be, while a checkpoint is being made. */
static bool has_needed_images(const struct log_engine *k, uint32_t chunk)
{
    const struct checkpoint *c = &k->checkpoint;
    return log_has_images(k, chunk) &&
           (k->chunks[chunk].image_lines > 0 || chunk == c->chunk || c->phase != CHECKPOINT_NONE);
}

uint32_t lost_chunks(const pm_container *c)
{
    const struct log_engine *k = log_engine_of(&c->txn);
    uint32_t lost = 0;
    for (uint32_t i = 1; i < k->known; i++)
        lost += k->chunks[i].live == 0 && !log_is_open(k, i) && !has(&k->free, i) &&
                !has(&k->emptied, i) && !has(&k->voided, i) && !has_needed_images(k, i);
    return lost;
}

uint32_t cleaners_chunk(const pm_container *c)
{
    return log_engine_of(&c->txn)->open[LOG_CLEANER];
}

uint32_t half_cleaned_chunk(const pm_container *c)
{
    const struct log_engine *k = log_engine_of(&c->txn);
    return k->victim_at > 1 ? k->victim : 0;
}

void fill_chunk(pm_container *c, uint32_t chunk)
{
    log_engine_of(&c->txn)->chunks[chunk].end = chunk_lines(&c->txn);
}

uint64_t live_words(const pm_container *c)
{
    return log_engine_of(&c->txn)->words_live;
}

uint32_t live_lines(const pm_container *c, uint32_t chunk)
{
    return (uint32_t)divide_up(log_engine_of(&c->txn)->chunks[chunk].live, PM_LINE_WORDS);
}

static uint64_t offset_of(const pm_container *c, const void *p)
{
    return (uint64_t)((const char *)p - c->container.base);
}

uint64_t unit_of(const pm_container *c, const void *p)
{
    return offset_of(c, p) / PM_LINE / LOG_UNIT_LINES;
}

bool begins_unit(const pm_container *c, const void *p)
{
    return offset_of(c, p) % (LOG_UNIT_LINES * PM_LINE) == 0;
}

const void *address_of(const pm_container *c, uint64_t offset)
{
    return c->container.base + offset;
}

bool line_is_left(const pm_container *c, const void *p)
{
    return log_is_left(&c->txn, offset_of(c, p) / PM_LINE);
}

uint64_t units_present(const pm_container *c)
{
    const struct log_engine *k = log_engine_of(&c->txn);
    uint64_t present = 0;
    for (uint64_t i = 0; i < k->checkpoint.units; i++)
        present += k->checkpoint.named.units[i].place != 0 && !log_unit_is_absent(k, i);
    return present;
}

uint64_t units_changed(const pm_container *c)
{
    const struct checkpoint *k = &log_engine_of(&c->txn)->checkpoint;
    uint64_t changed = 0;
    for (uint64_t i = 0; i < k->units; i++)
        changed += k->states[i] == UNIT_CHANGED;
    return changed;
}

uint64_t map_memory(const pm_container *c)
{
    const uint64_t pages = c->container.max_size / PM_LINE * sizeof(uint32_t) / PM_PAGE;
    unsigned char *in_memory = malloc(pages);
    uint64_t bytes = 0;
    if (in_memory && mincore(log_engine_of(&c->txn)->map.blocks, pages * PM_PAGE, in_memory) == 0)
        for (uint64_t i = 0; i < pages; i++)
            bytes += (in_memory[i] & 1) * (uint64_t)PM_PAGE;
    free(in_memory);
    return bytes;
}
