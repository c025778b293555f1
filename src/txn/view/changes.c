/*
 * Commit finds here what a transaction has changed. It compares marked lines and listed pages with home,
 * or with their images, line by line. So a store that does not change the value costs no log.
 *
 * The objects on a line (R1) decide what happens to it:
 *
 *   live before and after     logged if it differs
 *   live after, not before    fresh: written straight home. On a file only whole pages are written home,
 *                             because one more page in the round costs more than some lines of log. In
 *                             a translated container the line is logged, since home needs other pointers
 *   not live after            nobody's. Under `stores` the view gets home's contents back, so that the
 *                             audit does not report the line as a missed store. (A line that was already
 *                             free and was stored to may be logged instead.)
 *
 * A fresh line counts even if it equals home (R7). A torn commit may have written the same contents to
 * free space, and after a mere process crash they may be in the cache only. If the program repeats that
 * commit, the contents are equal and still not durable. Under the log engine home is memory, and always has
 * what the log says. So there it does not matter what was live before, and what is live after matters only
 * if something was freed.
 *
 * The lines of a new object that were marked together (T3) are fresh as a whole: nobody asks which objects
 * are on them, unless the transaction has freed a new object. Under redo all of them are written home, those
 * too to which the program has not stored (R7). Under the log engine those are logged that differ from home.
 */
#include "txn/txn.h"

#include "base/checksum.h"

#include <stdlib.h>
#include <string.h>

/* From this many marked lines on, commit sorts them. It then does not use their images, and lists pages
 * with many marked lines as whole pages. On a file sorting pays early, because whole fresh pages need no
 * log there. On pmem it pays late, because sorting costs 20 ns a line. */
#define SORT_MIN_FILE 512
#define SORT_MIN      IMAGES_MAX
#define DENSE_MIN     (PM_PAGE_LINES / 2)

static void add_fresh(struct changes *ch, uint64_t line, uint64_t lines)
{
    uint64_t offset = line * PM_LINE, bytes = lines * PM_LINE;
    if (ch->fresh_count > 0) {
        struct redo_fresh *last = &ch->fresh[ch->fresh_count - 1];
        if (last->offset + last->bytes == offset) {
            last->bytes += bytes;
            return;
        }
    }
    ch->fresh[ch->fresh_count++] = (struct redo_fresh){.offset = offset, .bytes = bytes};
}

/* The words of a line that differ from the last commit: one bit each. `image` is the line's image (T2), or
 * NULL. Who does not ask for words gets all of them, or none. */
static uint32_t changed_words(const struct txn *t, uint64_t line, const line_image *image)
{
    const char *view = t->c->base + line * PM_LINE, *home = t->c->home + line * PM_LINE;
    if (t->view.home_is_log && !t->translation)
        return line_words_that_differ(view, image ? (const void *)image : home);
    bool differs = image ? line_images_differ(view, image) : line_differs_from_home(t, line);
    return differs ? LINE_WORDS_ALL : 0;
}

static void add_live(struct txn *t, uint64_t line, bool before, uint32_t changed)
{
    if (before || t->view.logs_fresh)
        changes_add(&t->view.changes, 0, line, changed);
    else
        add_fresh(&t->view.changes, line, 1);
}

static void collect_line(struct txn *t, uint64_t line, const line_image *image)
{
    uint32_t changed = changed_words(t, line, image);
    if (t->view.home_is_log && t->freed != t->epoch) {
        if (changed != 0)
            changes_add(&t->view.changes, 0, line, changed);
        return;
    }
    unsigned live = t->upcalls.line_liveness(t->upcalls.context, line);
    if (live & LIVE_AFTER && (changed != 0 || !(live & LIVE_BEFORE || t->view.home_is_log)))
        add_live(t, line, live & LIVE_BEFORE, changed);
    else if (changed != 0 && t->tracker.stores)
        (void)view_restore(t, line * PM_LINE,
                           PM_LINE); /* a failure does no harm: the line is nobody's */
}

/* The lines of a page that differ from home: one bit a line, the first line in bit 0. */
static uint64_t differing_lines(const struct txn *t, uint64_t first)
{
    const char *view = t->c->base + first * PM_LINE, *home = t->c->home + first * PM_LINE;
    uint64_t differing = 0;
    if (t->translation)
        for (uint64_t i = 0; i < PM_PAGE_LINES; i++)
            differing |= (uint64_t)line_differs_from_home(t, first + i) << i;
    else
        for (uint64_t i = 0; i < PM_PAGE_LINES; i++)
            differing |= (uint64_t)line_images_differ(view + i * PM_LINE, home + i * PM_LINE) << i;
    return differing;
}

/* True if the page has changed. */
static bool collect_page(struct txn *t, uint32_t page)
{
    uint64_t first = (uint64_t)page * PM_PAGE_LINES, differing = differing_lines(t, first);
    struct page_liveness live = t->upcalls.page_liveness(t->upcalls.context, page);
    uint64_t fresh = t->view.home_is_log ? 0 : live.after & ~live.before;
    uint64_t changed = (differing & live.after) | fresh;
    if (t->c->medium.queue && !t->translation && live.before == 0 &&
        (uint64_t)__builtin_popcountll(changed) >= DENSE_MIN) {
        add_fresh(&t->view.changes, first, PM_PAGE_LINES);
        return true;
    }
    for (uint64_t left = changed; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        add_live(t, first + i, live.before >> i & 1, changed_words(t, first + i, NULL));
    }
    for (uint64_t left = t->tracker.stores ? differing & ~live.after : 0; left; left &= left - 1)
        (void)view_restore(t, (first + (uint32_t)__builtin_ctzll(left)) * PM_LINE, PM_LINE);
    return (differing | fresh) != 0;
}

/* Whether a page of these lines is listed. */
static bool any_listed(const struct txn *t, uint64_t line, uint64_t end)
{
    bool any = false;
    for (uint64_t page = line / PM_PAGE_LINES; page * PM_PAGE_LINES < end; page++)
        any |= t->pages.flags[page] & PAGE_LISTED;
    return any;
}

/* The lines of an object that the transaction has allocated. */
static void collect_object(struct txn *t, uint64_t run)
{
    uint64_t line = run_line(run), end = line + run_count(run);
    if (t->freed_new == t->epoch || any_listed(t, line, end)) {
        for (; line < end; line++)
            if (!any_listed(t, line, line + 1))
                collect_line(t, line, NULL);
    } else if (t->view.home_is_log) {
        for (; line < end; line++) {
            uint32_t changed = changed_words(t, line, NULL);
            if (changed != 0)
                changes_add(&t->view.changes, 0, line, changed);
        }
    } else {
        add_fresh(&t->view.changes, line, end - line);
    }
}

static int compare_lines(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Lines that are left in a sorted list. */
static uint64_t drop_repeated(uint64_t *lines, uint64_t count)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < count; i++)
        if (n == 0 || lines[n - 1] != lines[i])
            lines[n++] = lines[i];
    return n;
}

/* Drop void marks and sort the others, each line once, so that runs are long. List pages with many marks.
 * The images then belong to other entries, so drop them, also for the commit after one that fails. */
static void condense(struct txn *t)
{
    struct tracker *k = &t->tracker;
    uint64_t n = 0, all = k->count;
    for (uint64_t i = 0; i < all; i++)
        if (line_is_marked(t->c, k->marked[i]))
            k->marked[n++] = k->marked[i];
    tracker_drop_images(k, all);
    qsort(k->marked, n, sizeof *k->marked, compare_lines);
    n = drop_repeated(k->marked, n);
    k->count = n;
    for (uint64_t i = 0, end; i < n; i = end) {
        uint64_t page = k->marked[i] / PM_PAGE_LINES;
        for (end = i + 1; end < n && k->marked[end] / PM_PAGE_LINES == page; end++)
            ;
        if (end - i >= DENSE_MIN)
            pages_list_once(&t->pages, (uint32_t)page, true);
    }
}

void view_collect(struct txn *t)
{
    const struct tracker *k = &t->tracker;
    struct changes *ch = &t->view.changes;
    struct pages *p = &t->pages;
    ch->run_count = ch->lines = ch->fresh_count = 0;
    bool many = k->count >= (t->c->medium.queue ? SORT_MIN_FILE : SORT_MIN);
    if (many)
        condense(t);
    pages_sort(p);
    for (uint32_t i = 0; i < p->count; i++)
        p->opened[i].changed = collect_page(t, p->opened[i].page);
    for (uint64_t i = 0; i < k->object_count; i++)
        collect_object(t, k->objects[i]);
    for (uint64_t i = 0, n = k->count; i < n; i++)
        if (line_is_marked(t->c, k->marked[i]) &&
            !(p->flags[k->marked[i] / PM_PAGE_LINES] & PAGE_LISTED))
            collect_line(t, k->marked[i], many || !k->imaged[i] ? NULL : &k->images[i]);
    for (uint64_t i = 0; i < ch->fresh_count; i++)
        ch->fresh[i].sum = checksum(t->c->base + ch->fresh[i].offset, ch->fresh[i].bytes, 0);
}
