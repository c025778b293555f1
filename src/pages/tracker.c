/* The tables of marked lines. Marks are cleared line by line: a transaction has few among many. */
#define _GNU_SOURCE
#include "pages/tracker.h"

#include <string.h>
#include <sys/mman.h>

/* Threads that may find room in the list of marks at the same moment. */
#define MARKERS_MAX (UINT64_C(1) << 12)

/* Capacity of the list of marks: each line of the container, and some more. Threads that mark one line at
 * the same moment may each add an entry. If a signal handler leaves a mark by longjmp(3), the next mark
 * of the line adds another entry. So does the next call that lets the file grow, if one has failed and cut it
 * off again. */
uint64_t tracker_marks_max(const struct container *c)
{
    return c->max_size / PM_LINE + (UINT64_C(1) << 16);
}

void tracker_load(struct tracker *k, struct container *c)
{
    k->most = tracker_marks_max(c) - MARKERS_MAX;
    k->marked = tables_take(&c->tables, tracker_marks_max(c) * sizeof *k->marked);
    k->images = tables_take(&c->tables, IMAGES_MAX * sizeof *k->images);
    k->imaged = tables_take(&c->tables, IMAGES_MAX * sizeof *k->imaged);
    k->objects = tables_take(&c->tables, OBJECTS_MAX * sizeof *k->objects);
}

static inline void clear_marks(uint8_t *marks, uint8_t *kinds, uint64_t line, uint64_t lines)
{
    memset(marks + line, 0, lines);
    if (kinds)
        memset(kinds + line * PM_LINE_WORDS, KIND_NONE, lines * PM_LINE_WORDS);
}

void tracker_forget(struct tracker *k, const struct pages *p, uint32_t page)
{
    uint64_t first = (uint64_t)page * PM_PAGE_LINES;
    if (!k->stores)
        return;
    uint8_t *marks = line_mark(p->c, 0), *kinds = k->kinds ? line_kinds(p->c, 0) : NULL;
    for (uint64_t i = 0, n = k->count; i < n; i++)
        if (k->marked[i] >= first)
            clear_marks(marks, kinds, k->marked[i], 1);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->opened[i].page >= page)
            clear_marks(marks, kinds, (uint64_t)p->opened[i].page * PM_PAGE_LINES, PM_PAGE_LINES);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < k->object_count; i++) {
        uint64_t run = k->objects[i];
        if (run_line(run) < first) { /* all of it, for it is in one segment */
            k->objects[kept++] = run;
        } else {
            clear_marks(marks, kinds, run_line(run), run_count(run));
            k->object_lines -= run_count(run);
        }
    }
    k->object_count = kept;
}

void tracker_clear(struct tracker *k, const struct pages *p)
{
    if (!k->stores)
        return;
    uint8_t *marks = line_mark(p->c, 0), *kinds = k->kinds ? line_kinds(p->c, 0) : NULL;
    for (uint64_t i = 0, n = k->count; i < n; i++)
        clear_marks(marks, kinds, k->marked[i], 1);
    /* Not an atomic exchange: it would wait for the record on its way to the medium. */
    atomic_store_explicit(&k->count, 0, memory_order_relaxed);
    for (uint64_t i = 0; i < k->object_count; i++)
        clear_marks(marks, kinds, run_line(k->objects[i]), run_count(k->objects[i]));
    atomic_store_explicit(&k->object_count, 0, memory_order_relaxed);
    k->object_lines = 0;
    for (uint32_t i = 0; i < p->count; i++)
        clear_marks(marks, kinds, (uint64_t)p->opened[i].page * PM_PAGE_LINES, PM_PAGE_LINES);
}

void tracker_trim(const struct tracker *k, const struct container *c)
{
    madvise(line_mark(c, 0), container_bytes(c) >> MARKS_LINE_SHIFT, MADV_DONTNEED);
    if (k->kinds)
        madvise(line_kinds(c, 0), container_bytes(c) >> KINDS_WORD_SHIFT, MADV_DONTNEED);
}

void tracker_mark_object(struct tracker *k, const struct container *c, uint64_t line,
                         uint64_t lines)
{
    uint64_t n = k->object_count;
    k->objects[n] = redo_run(line, lines);
    atomic_store_explicit(&k->object_count, n + 1, memory_order_release);
    k->object_lines += lines;
    memset(line_mark(c, line), tracker_mark(k), lines);
}

void tracker_drop_images(struct tracker *k, uint64_t entries)
{
    memset(k->imaged, 0, min_u64(entries, IMAGES_MAX) * sizeof *k->imaged);
}
