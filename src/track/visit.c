/*
 * The lines that the open transaction has stored to, one by one: those of listed pages, and marked ones.
 * Linear in the lines of listed pages, and in the marked lines.
 */
#include "track/track.h"
#include "track/words.h"

/* If a page is listed because a store faulted there, all of its lines count as foreign. */
static int visit_page(struct txn *t, const struct page_entry *entry, line_visitor *visitor,
                      void *context)
{
    bool announced = entry->announced;
    uint64_t first = (uint64_t)entry->page * PM_PAGE_LINES;
    int result = 0;
    for (uint64_t line = first; line < first + PM_PAGE_LINES && result == 0; line++) {
        uint8_t mark = *line_mark(t->c, line);
        unsigned foreign = !announced            ? VISIT_FOREIGN | VISIT_UNSEEN
                           : mark & MARK_FOREIGN ? VISIT_FOREIGN
                                                 : 0;
        if (mark != 0 || !announced)
            result = visitor(t, line, VISIT_LISTED | foreign, context);
    }
    return result;
}

int track_visit_listed(struct txn *t, line_visitor *visitor, void *context)
{
    int result = 0;
    for (uint32_t i = 0; i < t->pages.count && result == 0; i++)
        result = visit_page(t, &t->pages.opened[i], visitor, context);
    return result;
}

int track_visit_marked(struct txn *t, uint64_t line, line_visitor *visitor, void *context)
{
    uint8_t mark = *line_mark(t->c, line);
    if (mark == 0 || line_is_listed(t, line))
        return 0;
    return visitor(t, line, mark & MARK_FOREIGN ? VISIT_FOREIGN : 0, context);
}

static int visit_object(struct txn *t, uint64_t run, line_visitor *visitor, void *context)
{
    int result = 0;
    for (uint64_t line = run_line(run), end = line + run_count(run); line < end && result == 0;
         line++)
        result = track_visit_marked(t, line, visitor, context);
    return result;
}

struct search {
    uint64_t low, size;
    track_found *found;
    void *context;
};

static int search_line(struct txn *t, uint64_t line, unsigned visit, void *context)
{
    struct search *s = context;
    const uint64_t *words = words_of_line(t->c, line);
    unsigned within = 0;
    (void)visit;
    for (uint32_t i = 0; i < PM_LINE_WORDS; i++)
        within |= (unsigned)(words[i] - s->low < s->size) << i;
    if (within == 0)
        return 0;
    uint64_t kinds = kinds_of_line(t->c, line);
    within &= words_of(kinds, KIND_MAY_POINT) | pieced_of(kinds) |
              (mapped_in_line(&t->map, line) & ~words_of(kinds, KIND_DATA));
    for (; within; within &= within - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(within);
        if (s->found(s->context, line * PM_LINE + i * sizeof *words) != 0)
            return -1;
    }
    return 0;
}

int track_find_pointers(struct txn *t, uint64_t low, uint64_t size, track_found *found,
                        void *context)
{
    struct search search = {low, size, found, context};
    if (!t->tracker.kinds)
        return 0;
    int result = track_visit_listed(t, search_line, &search);
    for (uint64_t i = 0, n = t->tracker.count; i < n && result == 0; i++)
        result = track_visit_marked(t, t->tracker.marked[i], search_line, &search);
    for (uint64_t i = 0, n = t->tracker.object_count; i < n && result == 0; i++)
        result = visit_object(t, t->tracker.objects[i], search_line, &search);
    return result;
}
