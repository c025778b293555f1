/*
 * Filling home, when a container is opened. The map is whole by then. So this goes through the container page
 * by page, and not through the log: each line is read once, from its newest piece. Pieces of neighbours lie
 * anywhere in the file, so what comes next is brought to the cache ahead.
 *
 *   map     4163  4164  4165 …          together: they are written to home from there
 *   map      977  4163     0 …          not together: they are copied to the stage first
 *
 * Home is written by write(2). The kernel takes no fault for each page then, and does not clear pages first.
 * If it cannot write, home is stored to.
 */
#include "txn/log/deltas.h"

#include <string.h>

/* So many lines ahead, their pieces come to the cache. */
#define LINES_AHEAD 24
/* And the block of the map that says where they are. */
#define BLOCK_AHEAD 128

struct filler {
    const struct txn *t;
    uint64_t end;          /* lines of home */
    uint32_t first, count; /* pages in the stage */
};

static void write_home(const struct txn *t, uint32_t page, const char *from, uint64_t bytes)
{
    uint64_t offset = (uint64_t)page << PM_PAGE_SHIFT;
    if (file_write(t->c->home_fd, from, bytes, offset) != 0)
        memcpy(t->c->home + offset, from, bytes);
}

static void flush(struct filler *f)
{
    if (f->count > 0)
        write_home(f->t, f->first, log_engine_of(f->t)->stage, (uint64_t)f->count << PM_PAGE_SHIFT);
    f->count = 0;
}

static bool has_pieces(const struct log_engine *k, uint64_t line)
{
    uint32_t any = 0;
    for (uint64_t i = 0; i < PM_PAGE_LINES; i++)
        any |= line_map_at(&k->map, line + i);
    return any != 0;
}

static void fetch(const struct txn *t, uint64_t line)
{
    const struct log_engine *k = log_engine_of(t);
    if (line % LINE_MAP_GROUP == 0)
        line_map_fetch(&k->map, line + BLOCK_AHEAD);
    uint32_t next = line_map_at(&k->map, line + LINES_AHEAD),
             then = line_map_at(&k->map, line + 2 * LINES_AHEAD);
    if (has_delta(then))
        __builtin_prefetch(delta_of(k, then));
    if (has_delta(next))
        __builtin_prefetch((const uint64_t *)t->c->file + word_of(delta_of(k, next)));
    __builtin_prefetch(at_place(t, base_of(k, next)));
}

/* A new container has words of metadata that are in no record. */
void log_read_page(const struct txn *t, uint32_t page, char *to)
{
    const uint64_t first = page * PM_PAGE_LINES, end = container_bytes(t->c) / PM_LINE;
    const bool is_metadata = first < log_lines_of_metadata(t);
    for (uint64_t line = first; line < first + PM_PAGE_LINES; line++, to += PM_LINE) {
        if (line + BLOCK_AHEAD < end)
            fetch(t, line);
        if (log_entry(t, line) == 0 && is_metadata)
            memcpy(to, t->c->home + line * PM_LINE, PM_LINE);
        else
            log_read_line(t, line, to);
    }
}

static void put_together(struct filler *f, uint32_t page)
{
    if (f->first + f->count != page || f->count == LOG_PART_LINES / PM_PAGE_LINES)
        flush(f);
    if (f->count == 0)
        f->first = page;
    log_read_page(f->t, page, log_engine_of(f->t)->stage + ((uint64_t)f->count++ << PM_PAGE_SHIFT));
}

void log_fill_home(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    const uint64_t lines = k->bounded ? log_lines_of_metadata(t) : UINT64_MAX;
    struct filler f = {.t = t, .end = min_u64(lines, container_bytes(t->c) / PM_LINE)};
    const uint32_t end = (uint32_t)(f.end / PM_PAGE_LINES);
    for (uint32_t page = 0, together; page < end; page += together) {
        const uint64_t line = page * PM_PAGE_LINES;
        together = (uint32_t)(line_map_together(&k->map, line, f.end - line) / PM_PAGE_LINES);
        if (k->mapped[page] || !has_pieces(k, line)) {
            together = 1;
        } else if (together > 0) {
            write_home(t, page, at_place(t, line_map_at(&k->map, line)),
                       (uint64_t)together << PM_PAGE_SHIFT);
        } else {
            put_together(&f, page);
            together = 1;
        }
    }
    flush(&f);
}
