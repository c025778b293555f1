/*
 * The audit of store tracking. Suppose that code without marks stores to a page that other marks have
 * opened. The only trace is a line that differs from home and has no mark (I1). So the audit compares
 * open pages with home. Normally it compares one page every AUDIT_EVERY commits: this costs some
 * nanoseconds a commit, and finds repeated missed stores sooner or later. If the environment has
 * LIBPM_AUDIT=1, it compares all open pages at every commit.
 *
 * If foreign code stores to a line and marked code stores there afterwards, the line's image already has
 * the foreign store (T2 does not hold). Commit trusts the image, and misses the foreign store if nothing
 * else changes in the line. So under LIBPM_AUDIT=1 the audit also compares images with home. Commit
 * itself compares a line without an image with home. So the commit includes a missed store on this line,
 * and the audit does not name it.
 *
 * The audit marks the stores it finds. The commit fails, since the program must not go on believing that
 * all its stores are seen. The audit then looks at all open pages and drops all images. So nothing is
 * lost: the next commit includes all missed stores.
 */
#include "track/track.h"

#include "address/translation.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

/* The audit examines the states of at most this many pages to find the next open page. */
#define AUDIT_LOOK 256
static const char remedy[] = "was not announced: compile the code that makes it with pmcc, or call "
                             "pm_dirty() first; the next commit will include it";

/* True if the word of the view has home's value. In a translated container it may also have the relocated
 * value of home's pointer. A store of exactly that value is missed: one store in 2^64. */
static bool is_as_home(const struct txn *t, uint64_t offset)
{
    uint64_t view = *(const uint64_t *)(t->c->base + offset), home = *home_word(t->c, offset);
    return view == home || (t->translation && view == translate_to_view(t->translation, home));
}

static bool line_is_as_home(const struct txn *t, uint64_t line)
{
    if (!line_differs_from_home(t, line))
        return true;
    uint64_t offset = line * PM_LINE, end = offset + PM_LINE;
    while (offset < end && is_as_home(t, offset))
        offset += sizeof(uint64_t);
    return offset == end;
}

/* The first byte that differs from home. The word or line at `offset` must differ. */
static uint64_t first_difference(const struct txn *t, uint64_t offset)
{
    while (is_as_home(t, offset))
        offset += sizeof(uint64_t);
    while (t->c->base[offset] == t->c->home[offset])
        offset++;
    return offset;
}

/* `offset` is the offset of a word or line that differs from home. */
static void escaped(struct txn *t, uint64_t offset)
{
    struct tracker *k = &t->tracker;
    char object[OBJECT_TEXT];
    offset = first_difference(t, offset);
    contents_describe(t->c, offset, ", ", object);
    if (k->escaped++ == 0 || k->audit)
        pm__fail_at(t->c->path, offset, EFAULT, "the store to %p%s, %s",
                    (void *)(t->c->base + offset), object, remedy);
    if (k->audit)
        pm__warn();
}

static bool is_taken_whole(const struct txn *t, uint64_t line)
{
    return t->engine->takes_whole && t->engine->takes_whole(t, line);
}

static void audit_page(struct txn *t, uint32_t page)
{
    const uint8_t *marks = line_mark(t->c, 0);
    uint64_t offset = (uint64_t)page << PM_PAGE_SHIFT;
    if (!t->translation && memcmp(t->c->base + offset, t->c->home + offset, PM_PAGE) == 0)
        return; /* as a rule */
    if (!segments_page_is_data(t, page))
        return; /* marks opened it as data, and now it is a header, whose words are journaled */
    for (uint64_t line = (uint64_t)page * PM_PAGE_LINES;
         line < (uint64_t)(page + 1) * PM_PAGE_LINES; line++) {
        if (marks[line] || line_is_as_home(t, line) ||
            !(t->upcalls.line_liveness(t->upcalls.context, line) & LIVE_AFTER) ||
            is_taken_whole(t, line))
            continue;
        escaped(t, line * PM_LINE);
        (void)t->engine->open_marked(t, page); /* it is open, so track_mark() takes no lock now */
        track_mark(t, line, MARK_WHENEVER);
        track_mark_foreign(t, line * PM_LINE, PM_LINE);
    }
}

/* Compare the next open page with home, or all open pages if `all`. */
static void audit_pages(struct txn *t, bool all)
{
    struct tracker *k = &t->tracker;
    const uint8_t *flags = t->pages.flags;
    uint32_t end = (uint32_t)(container_bytes(t->c) >> PM_PAGE_SHIFT), page = k->audit_hand;
    uint32_t look = all || end < AUDIT_LOOK ? end : AUDIT_LOOK;
    for (uint32_t i = 0; i < look; i++) {
        page = page + 1 < end ? page + 1 : 0;
        if ((flags[page] & (PAGE_OPEN | PAGE_LISTED)) != PAGE_OPEN)
            continue;
        audit_page(t, page);
        if (!all)
            break;
    }
    k->audit_hand = page;
}

/* True if an object was on the line, or on a part of it, at the last commit, and still is. Commit takes
 * all of a line that had no object (R7), and such free memory may hold anything that foreign code left. */
static bool stays_live(struct txn *t, uint64_t line)
{
    if (!segments_page_is_data(t, (uint32_t)(line / PM_PAGE_LINES)))
        return false;
    unsigned live = t->upcalls.line_liveness(t->upcalls.context, line);
    return live & LIVE_BEFORE && live & LIVE_AFTER;
}

/* Report each word of the line that was stored to before the line's mark, and not since. */
static void audit_image(struct txn *t, uint64_t line, const line_image *image)
{
    for (uint64_t i = 0; i < PM_LINE_WORDS; i++) {
        uint64_t offset = line * PM_LINE + i * sizeof(uint64_t);
        uint64_t view = *(const uint64_t *)(t->c->base + offset);
        if (view == (*image)[i] && view != *home_word(t->c, offset)) {
            escaped(t, offset);
            track_mark_foreign(t, offset, sizeof(uint64_t));
        }
    }
}

/* Skip listed pages. Commit compares them with home, and a failed commit may have written them home. */
static void audit_images(struct txn *t)
{
    struct tracker *k = &t->tracker;
    for (uint64_t i = 0, n = min_u64(k->count, IMAGES_MAX); i < n; i++) {
        uint64_t line = k->marked[i], offset = line * PM_LINE;
        if (k->imaged[i] && line_is_marked(t->c, line) &&
            !(t->pages.flags[line / PM_PAGE_LINES] & PAGE_LISTED) &&
            line_images_differ(t->c->home + offset, &k->images[i]) && stays_live(t, line))
            audit_image(t, line, &k->images[i]);
    }
}

/* True if the audit found a missed store. Out of line, because it rarely runs. */
__attribute__((noinline)) static bool audit(struct txn *t)
{
    struct tracker *k = &t->tracker;
    if (k->audit)
        audit_images(t);
    audit_pages(t, k->audit);
    if (k->escaped == 0)
        return false;
    if (!k->audit) {
        audit_images(t);
        audit_pages(t, true);
    }
    tracker_drop_images(k, k->count);
    k->escaped = 0;
    return true;
}

int track_audit_pages(struct txn *t)
{
    if (!audit(t))
        return 0;
    errno = EFAULT; /* the message on stderr may have changed errno */
    return -1;
}
