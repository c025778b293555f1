/*
 * Compares pages word by word with their old contents. Under undo these are the images in the log, and under
 * redo they are in home. Redo also looks at the flags of every page.
 *
 * /proc/self/maps is read when the first word looks like an address. If it cannot be read, each such word
 * costs a system call.
 */
#include "track/strays.h"

#include "address/foreign.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A commit names at most this many words, and counts the others. */
#define NAMED_MAX 16

struct scan {
    struct txn *t;
    struct maps maps; /* read when the first word needs them */
    bool have_maps;
    int error; /* of maps_read() */
    uint64_t found;
};

/* True for libpm's tables of marks and kinds. They take much address space, and nobody points to them. */
static bool is_of_tables(uint64_t value)
{
    return value - MARKS_TABLE < MARKS_SIZE || value - KINDS_TABLE < KINDS_SIZE;
}

static bool leads_out(struct scan *s, uint64_t value)
{
    if (!foreign_is_address(value) || container_is_led_into(s->t->c, value) || is_of_tables(value))
        return false;
    if (!s->have_maps) {
        s->have_maps = true;
        s->error = maps_read(&s->maps);
    }
    return s->error == 0 ? maps_have(&s->maps, value) : foreign_is_mapped(value);
}

static void describe(const struct scan *s, uint64_t value, char text[MAPS_TEXT])
{
    const struct container *other = arena_find((void *)value);
    if (value - VOLATILE_BASE < VOLATILE_SIZE)
        snprintf(text, MAPS_TEXT, "the heap of pmcc --discover");
    else if (other)
        snprintf(text, MAPS_TEXT, "another container, %s", other->path);
    else if (s->error != 0)
        snprintf(text, MAPS_TEXT, "memory outside (/proc/self/maps: %s)", strerror(-s->error));
    else
        maps_describe(&s->maps, value, text);
}

static void look_at(struct scan *s, uint64_t offset, uint64_t value)
{
    char object[OBJECT_TEXT], target[MAPS_TEXT];
    if (!leads_out(s, value))
        return;
    contents_describe(s->t->c, offset, ", ", object);
    if (!object[0] || ++s->found > NAMED_MAX)
        return;
    describe(s, value, target);
    fprintf(stderr,
            "libpm: %s: offset %" PRIu64 ": the word %#" PRIx64 "%s, looks like a pointer to %s\n",
            s->t->c->path, offset, value, object, target);
}

/* Scan a page. `before` has its contents at the last commit; NULL if it had no object then. In a moved
 * container a word that is not mapped is the same in home and view. */
static void scan_page(struct scan *s, uint32_t page, const char *before)
{
    struct txn *t = s->t;
    struct page_liveness live = t->upcalls.page_liveness(t->upcalls.context, page);
    for (uint64_t i = 0; i < PM_PAGE / sizeof(uint64_t); i++) {
        uint64_t in_page = i / PM_LINE_WORDS, line = (uint64_t)page * PM_PAGE_LINES + in_page;
        uint64_t offset = line * PM_LINE + i % PM_LINE_WORDS * sizeof(uint64_t), was;
        uint64_t now = *(const uint64_t *)(t->c->base + offset);
        if (!(live.after >> in_page & 1))
            continue;
        if (before && live.before >> in_page & 1) {
            memcpy(&was, before + i * sizeof was, sizeof was);
            if (now == was)
                continue;
        }
        if (!t->c->vouched || !(mapped_in_line(&t->map, line) >> i % PM_LINE_WORDS & 1))
            look_at(s, offset, now);
    }
}

/* Under undo stores are in place, so the log has the old contents. Pages that were fresh have no image. */
static void scan_in_place(struct scan *s)
{
    const struct txn *t = s->t;
    for (uint32_t i = 0, n = t->pages.count; i < n; i++) {
        struct page_entry e = t->pages.opened[i];
        scan_page(s, e.page, e.slot == SLOT_NONE ? NULL : log_slot(&t->log, t->epoch % 2, e.slot));
    }
    for (uint64_t i = 0; i < t->note_count; i++)
        if (t->notes[i].live && !page_has(&t->pages, t->notes[i].page, PAGE_LISTED))
            scan_page(s, t->notes[i].page, NULL);
}

/* Under redo stores are in private copies, so home has the old contents. */
static void scan_private(struct scan *s)
{
    const struct txn *t = s->t;
    for (uint32_t page = 0, n = (uint32_t)(container_bytes(t->c) >> PM_PAGE_SHIFT); page < n;
         page++)
        if (t->pages.flags[page] & (PAGE_OPEN | PAGE_LISTED | PAGE_PRIVATE))
            scan_page(s, page, page_home(&t->pages, page));
}

void strays_warn(struct txn *t)
{
    UNCANCELLED; /* the caller holds a lock, and printing is a cancellation point */
    struct scan s = {.t = t};
    int error = errno;
    if (t->engine->in_place)
        scan_in_place(&s);
    else
        scan_private(&s);
    if (s.found > NAMED_MAX)
        fprintf(stderr, "libpm: %s: so do %" PRIu64 " more words of this commit\n", t->c->path,
                s.found - NAMED_MAX);
    if (s.found > 0)
        fprintf(stderr,
                "libpm: %s: another run cannot follow such pointers: store none, or declare those "
                "into modules (PM_MOVABLE); what is a number is right (LIBPM_AUDIT)\n",
                t->c->path);
    maps_free(&s.maps);
    errno = error;
}
