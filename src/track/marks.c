/*
 * Marks: compiled code says which line it is about to store to. The first mark of a page opens the page.
 * The first mark of a line puts the line into the list, with an image of its contents. Compiled code finds
 * that a line is marked by a few instructions of its own, and does not come here again. The lines of a new
 * object may have their marks before the first store (T3), and then no store to the object comes here.
 */
#include "track/track.h"

#include "base/cancel.h"

#include <errno.h>
#include <string.h>
#include <sys/single_threaded.h>

/* A page that was opened with its neighbour has no copy yet. */
static inline bool is_ready(const struct txn *t, uint32_t page)
{
    const uint8_t ready = PAGE_OPEN | PAGE_PRIVATE;
    return (__atomic_load_n(&t->pages.flags[page], __ATOMIC_RELAXED) & ready) == ready;
}

/* This runs inside a store, so errno must not change. */
static int make_ready(struct txn *t, uint32_t page)
{
    if (is_ready(t, page))
        return 0;
    int saved = errno, error = t->engine->open_marked(t, page);
    errno = saved;
    return error;
}

/* Reserve the next entry in the list of marks, and return its index. One instruction does it, so that no
 * signal comes between. It is locked only if other threads may mark too. */
static uint64_t next_mark(struct tracker *k)
{
    uint64_t n = 1;
    if (!__libc_single_threaded)
        return atomic_fetch_add_explicit(&k->count, 1, memory_order_relaxed);
    __asm__ volatile("xadd %0, %1" : "+r"(n), "+m"(k->count)::"memory");
    return n;
}

/* Runs before the first mark on a page. Returns whether the line is to be marked. Out of line, because it
 * needs registers that track_mark() would otherwise save each time. */
__attribute__((noinline)) static bool open_to_mark(struct txn *t, uint64_t line)
{
    uint32_t page = (uint32_t)(line / PM_PAGE_LINES);
    if (!t->tracker.stores) { /* stores fault here: this page never needs a mark */
        memset(line_mark(t->c, align_down(line, PM_PAGE_LINES)), MARK_LINE, PM_PAGE_LINES);
        return false;
    }
    DEFER_CANCELLATION;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    bool data = segments_page_is_data(t, page);
    int error = data ? make_ready(t, page) : 0;
    lock_release_masked(&t->lock, &saved);
    return data && error == 0; /* if not, the store will fault, and will be served or reported */
}

/* Load a line of the view. Why this is no race: see tests/tsan.supp. */
static inline void load_line(const struct txn *t, uint64_t line, line_image *image)
{
    *image = *(const line_image *)(t->c->base + line * PM_LINE);
}

/* Say that the line is marked. Other threads may be setting other bits of the same byte. */
static void publish_mark(const struct txn *t, uint64_t line)
{
    if (__libc_single_threaded)
        *line_mark(t->c, line) = tracker_mark(&t->tracker);
    else
        __atomic_fetch_or(line_mark(t->c, line), tracker_mark(&t->tracker), __ATOMIC_RELEASE);
}

/* List a page that is stored to as a whole, or because the list of marks is full. Its lines then need no
 * entries of their own. */
__attribute__((noinline)) static void mark_page(struct txn *t, uint32_t page)
{
    DEFER_CANCELLATION;
    sigset_t saved;
    lock_acquire_masked(&t->lock, &saved);
    if (segments_page_is_data(t, page) && make_ready(t, page) == 0) {
        pages_list_once(&t->pages, page, true);
        uint8_t *mark = line_mark(t->c, (uint64_t)page * PM_PAGE_LINES);
        for (uint32_t i = 0; i < PM_PAGE_LINES; i++)
            mark[i] |= tracker_mark(&t->tracker);
    }
    lock_release_masked(&t->lock, &saved);
}

/* The line's byte is set last. Once it is set, the line is in the list, with an image from before any
 * thread stores to it. If a signal handler leaves this function earlier by longjmp(3), the next store
 * begins anew. */
__attribute__((always_inline)) static inline void mark_line(struct txn *t, uint64_t line,
                                                            enum mark_time when)
{
    struct tracker *k = &t->tracker;
    uint32_t page = (uint32_t)(line / PM_PAGE_LINES);
    if (!(t->tracker.stores && is_ready(t, page)) && !open_to_mark(t, line))
        return;
    bool imaged = when == MARK_AHEAD && !t->translation;
    line_image image = {0};
    if (imaged)
        load_line(t, line, &image);
    if (__atomic_load_n(line_mark(t->c, line), __ATOMIC_RELAXED)) /* another thread was faster */
        return;
    if (t->pages.heat[page] == 0)
        t->pages.heat[page] = 1;
    if (__builtin_expect(k->count >= k->most, false)) {
        mark_page(t, page);
        return;
    }
    uint64_t n = next_mark(k);
    k->marked[n] = line;
    imaged &= n < IMAGES_MAX;
    if (imaged)
        k->images[n] = image;
    else
        __builtin_prefetch(t->c->home + line * PM_LINE);
    if (n < IMAGES_MAX)
        k->imaged[n] = imaged;
    publish_mark(t, line);
}

void track_mark(struct txn *t, uint64_t line, enum mark_time when)
{
    mark_line(t, line, when);
}

/* The first line in [line, end) that is not marked, or `end`. */
static uint64_t first_unmarked(const struct txn *t, uint64_t line, uint64_t end)
{
    const uint8_t *marks = line_mark(t->c, 0);
    const uint64_t each = UINT64_C(0x0101010101010101), marked = 0x80 * each; /* if 127 is added */
    for (uint64_t eight; end - line >= sizeof eight; line += sizeof eight) {
        memcpy(&eight, marks + line, sizeof eight);
        if (((eight + 0x7f * each) & marked) != marked)
            break;
    }
    while (line < end && marks[line])
        line++;
    return line;
}

/* List a page that is stored to as a whole, unless all its lines are marked before their first store. */
void track_mark_range(struct txn *t, uint64_t offset, uint64_t bytes, enum mark_time when)
{
    uint64_t line = offset / PM_LINE, end = divide_up(offset + bytes, PM_LINE);
    for (uint64_t next; line < end; line = next) {
        next = min_u64(end, align_down(line, PM_PAGE_LINES) + PM_PAGE_LINES);
        uint64_t unmarked = first_unmarked(t, line, next);
        bool whole = next - line == PM_PAGE_LINES && t->tracker.stores;
        if (whole && (unmarked < next || when != MARK_AHEAD))
            mark_page(t, (uint32_t)(line / PM_PAGE_LINES));
        for (; !whole && unmarked < next; unmarked++)
            if (!*line_mark(t->c, unmarked))
                mark_line(t, unmarked, when);
    }
}

/* T3. A closed page is left to the first mark on it, which opens it: the program may never store there. If
 * another thread closes or lists a page meanwhile, a commit compares it as a whole. */
static bool may_be_marked(const struct txn *t, uint64_t line, uint64_t end)
{
    for (uint64_t page = line / PM_PAGE_LINES; page * PM_PAGE_LINES < end; page++)
        if (!is_ready(t, (uint32_t)page))
            return false;
    uint8_t any = 0;
    for (const uint8_t *mark = line_mark(t->c, line); line < end; line++)
        any |= *mark++;
    return any == 0;
}

void track_mark_object(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint64_t line = offset / PM_LINE, end = divide_up(offset + bytes, PM_LINE);
    if (t->tracker.object_count == OBJECTS_MAX || !may_be_marked(t, line, end))
        return;
    for (uint64_t page = line / PM_PAGE_LINES; page * PM_PAGE_LINES < end; page++)
        if (t->pages.heat[page] == 0)
            t->pages.heat[page] = 1;
    tracker_mark_object(&t->tracker, t->c, line, end - line);
}

int track_dirty(struct txn *t, uint64_t offset, uint64_t bytes)
{
    int error = txn_dirty(t, offset, bytes);
    if (error == 0 && t->tracker.stores)
        track_mark_range(t, offset, bytes, MARK_WHENEVER);
    return error;
}
