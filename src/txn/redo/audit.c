/*
 * The audit of store tracking. A store by code that marks nothing, to a page that other marks have
 * opened, leaves no trace but a line that differs from home without a mark (R1). So comparing open
 * pages with home finds it: one page every AUDIT_EVERY commits always, which finds a habit sooner
 * or later at the price of some nanoseconds a commit; all pages at every commit when the
 * environment has LIBPM_AUDIT=1.
 *
 * What it finds it marks. So the commit fails, since the program must not go on believing that all
 * its stores are seen, but nothing is lost: the next commit includes them.
 */
#include "txn/redo/redo.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

#define AUDIT_EVERY 64
/* States looked at to find the next open page. */
#define AUDIT_LOOK 256
static const char remedy[] = "was not announced: compile the code that makes it with pmcc, or call "
                             "pm_dirty() first; the next commit will include it";

/* Whether a word is what home has. In a moved container a pointer may be, which it is if it is as
 * if nobody had stored there: so this may miss one in 2^64 stores. */
static bool is_as_home(const struct txn *t, uint64_t offset)
{
    uint64_t view = *(const uint64_t *)(t->c->base + offset), home = *home_word(t->c, offset);
    return view == home || (t->moved && view == moved_to_view(t, home));
}

static bool line_is_as_home(const struct txn *t, uint64_t line)
{
    if (!redo_line_differs(t, line))
        return true;
    uint64_t offset = line * PM_LINE, end = offset + PM_LINE;
    while (offset < end && is_as_home(t, offset))
        offset += sizeof(uint64_t);
    return offset == end;
}

/* The first byte of a line that differs from home. */
static uint64_t first_difference(const struct txn *t, uint64_t line)
{
    uint64_t offset = line * PM_LINE;
    while (is_as_home(t, offset))
        offset += sizeof(uint64_t);
    while (t->c->base[offset] == t->c->home[offset])
        offset++;
    return offset;
}

static void escaped(struct txn *t, uint64_t line)
{
    struct redo *r = t->redo;
    char object[OBJECT_TEXT];
    uint64_t offset = first_difference(t, line);
    txn_describe_object(t, offset, ", ", object);
    if (r->escaped++ == 0 || r->audit)
        pm__fail(EFAULT, "%s: offset %llu: the store to %p%s, %s", t->c->path,
                 (unsigned long long)offset, (void *)(t->c->base + offset), object, remedy);
    if (r->audit)
        pm__warn();
}

/* The number of escaped stores' lines on an open page; they are marked. */
static uint64_t audit_page(struct txn *t, uint32_t page)
{
    const uint8_t *marks = redo_mark(t, 0);
    uint64_t found = 0, offset = (uint64_t)page << PM_PAGE_SHIFT;
    if (!t->moved && memcmp(t->c->base + offset, t->c->home + offset, PM_PAGE) == 0)
        return 0; /* as a rule */
    for (uint64_t line = (uint64_t)page * PM_PAGE_LINES;
         line < (uint64_t)(page + 1) * PM_PAGE_LINES; line++) {
        if (marks[line] || line_is_as_home(t, line) ||
            !(t->upcalls.line_liveness(t->upcalls.context, line) & LIVE_AFTER))
            continue;
        escaped(t, line);
        txn_mark(t, line, MARK_WHENEVER);
        txn_mark_foreign(t, line * PM_LINE, PM_LINE);
        found++;
    }
    return found;
}

/* The number of lines found; out of line, for it is rare. */
__attribute__((noinline)) static uint64_t audit_pages(struct txn *t)
{
    struct redo *r = t->redo;
    const uint8_t *flags = t->pages.flags;
    uint32_t end = (uint32_t)(container_bytes(t->c) >> PM_PAGE_SHIFT), page = r->audit_hand;
    uint32_t look = r->audit || end < AUDIT_LOOK ? end : AUDIT_LOOK;
    uint64_t found = 0;
    r->escaped = 0;
    for (uint32_t i = 0; i < look; i++) {
        page = page + 1 < end ? page + 1 : 0;
        if ((flags[page] & (PAGE_OPEN | PAGE_LISTED)) != PAGE_OPEN)
            continue;
        found += audit_page(t, page);
        if (!r->audit)
            break;
    }
    r->audit_hand = page;
    return found;
}

int redo_audit(struct txn *t)
{
    if ((!t->redo->audit && t->commits % AUDIT_EVERY != 0) || audit_pages(t) == 0)
        return 0;
    errno = EFAULT; /* which saying so on stderr may have changed */
    return -1;
}
